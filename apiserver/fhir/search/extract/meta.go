package extract

import "github.com/paddock-health/paddock/apiserver/store"

// Meta returns the index values of _security, _tag and _profile, as Values does, but reads only
// meta. It omits values for the modifier :text and elements without a value, and does not remove
// duplicates. opens is the offset after the opening brace of meta, as in store.Body.MetaOffset.
func Meta(body []byte, opens int) []store.IndexValue {
	if opens < 1 || opens > len(body) {
		return nil
	}
	var values []store.IndexValue
	for members := objectOf(body[opens-1:]); ; {
		name, value, ok := members.next()
		if !ok {
			return values
		}
		switch string(name) {
		case "security", "tag":
			param := "_" + string(name)
			for codings := arrayOf(value); ; {
				coding, ok := codings.item()
				if !ok {
					break
				}
				if token, _ := readCoding(coding); token != (store.Token{}) {
					values = append(values, store.IndexValue{Param: param, Value: token})
				}
			}
		case "profile":
			for profiles := arrayOf(value); ; {
				profile, ok := profiles.item()
				if !ok {
					break
				}
				if uri := string(unquote(profile)); uri != "" {
					values = append(values, store.IndexValue{Param: "_profile", Value: store.Text{Folded: uri, Original: uri}})
				}
			}
		}
	}
}
