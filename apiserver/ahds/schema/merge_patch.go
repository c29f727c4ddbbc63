package schema

import "github.com/go-json-experiment/json/jsontext"

// merge applies a merge patch, which must be an object, to a value (RFC 7396 §2). Unlike libraries,
// it preserves members that the patch does not name byte for byte, and nulls in arrays.
func merge(target, patch jsontext.Value) (jsontext.Value, error) {
	changes, err := Members(patch)
	if err != nil {
		return nil, err
	}
	var result Object
	if target.Kind() == jsontext.KindBeginObject {
		if result, err = Members(target); err != nil {
			return nil, err
		}
	}
	at := make(map[string]int, len(result)+len(changes))
	for i, member := range result {
		at[member.Name] = i
	}
	for _, change := range changes {
		i, found := at[change.Name]
		if !found {
			i = len(result)
			at[change.Name] = i
			result = append(result, Member{Name: change.Name})
		}
		if result[i].Value, err = mergeMember(result[i].Value, change.Value); err != nil {
			return nil, err
		}
	}
	writer := NewWriter(nil)
	for _, member := range result {
		if member.Value != nil {
			writer.Raw(member.Name, member.Value)
		}
	}
	return writer.Done(), nil
}

// mergeMember returns the new value of a member, and nil if the member is removed.
func mergeMember(current, change jsontext.Value) (jsontext.Value, error) {
	switch change.Kind() {
	case jsontext.KindNull:
		return nil, nil
	case jsontext.KindBeginObject:
		return merge(current, change)
	default:
		return change, nil
	}
}
