package indexrow

import (
	"hash/fnv"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// Texts of a record are stored twice. Each folded text, up to MaxIndexedBytes, has a row in ix_text, which
// finds records by value. The column vals of the record's row has all texts, folded and original, in
// full. Tests and orders read this column.
//
// A parameter may be a union (store.Extractor.Parts), as name is of family and given. A text of a
// union that is also a text of a part is stored for the part only.

// textKeyBits is the number of bits of a text key.
const textKeyBits = 24

// TextKey returns the key that a text parameter of a type has in ix_text and vals. It is a hash
// without a secret, because its input is public. A test of package extraction shows that no two
// parameters have the same key.
func TextKey(typeName, param string) int32 {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(typeName + "\x00" + param)) // never fails
	hash := sum.Sum32()
	return int32((hash ^ hash>>textKeyBits) & (1<<textKeyBits - 1))
}

// TextKeys returns the keys under which the texts of a parameter are stored: its own and those of
// its parts.
func TextKeys(typeName, param string, parts []string) []int32 {
	keys := make([]int32, 0, 1+len(parts))
	keys = append(keys, TextKey(typeName, param))
	for _, part := range parts {
		keys = append(keys, TextKey(typeName, part))
	}
	return keys
}

// The bytes that separate the texts in vals. None of them occurs in UTF-8.
const (
	// startOfText begins a folded text. A code of the key (appendKeyCode) and one of the two following
	// bytes come before the text.
	startOfText = 0xff
	// isOriginal means that the original text is equal to the folded one. isFolded means that the
	// original text differs. The original text is then stored after all folded texts, and begins with
	// startOfOriginal and the code of the key.
	isOriginal, isFolded = 0xfa, 0xfb
	startOfOriginal      = 0xf8
	endOfText            = 0xfe
	// lastOfKey comes before the startOfText of the greatest folded text of a key. The texts of a key
	// are in ascending order. endOfKey comes after the greatest one.
	lastOfKey, endOfKey = 0xfd, 0xf9
	// maxTextOverhead is the maximum number of bytes that packText adds to a folded text: lastOfKey,
	// startOfText, the code of the key, isFolded, endOfText and endOfKey.
	maxTextOverhead = 9
)

// appendKeyCode appends a key as four bytes with six bits each. No text in UTF-8 begins with such a
// byte, so no text is found in a code.
func appendKeyCode(to []byte, key int32) []byte {
	return append(to, 0x80|byte(key>>18&0x3f), 0x80|byte(key>>12&0x3f), 0x80|byte(key>>6&0x3f), 0x80|byte(key&0x3f))
}

// validText returns a text in which each sequence that is not UTF-8 is replaced.
func validText(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// IndexedText returns the column val of a folded text.
func IndexedText(folded string) string { return folded[:min(len(folded), MaxIndexedBytes)] }

// paramTexts are the texts of one parameter. addTexts sorts them and removes duplicates. parts are the
// parts of the parameter. begin and end are the bounds of the rows in Rows.indexed that have the
// parameter's own key.
type paramTexts struct {
	param      string
	parts      []string
	texts      []store.Text
	begin, end int
}

// textsOfParams collects the texts of a record by parameter. free is an empty slice of the memory that no
// parameter uses yet.
type textsOfParams struct {
	params []paramTexts
	free   []store.Text
}

// newTextsOfParams returns textsOfParams with memory for a number of parameters, and for their texts.
func newTextsOfParams(params, texts int) textsOfParams {
	return textsOfParams{make([]paramTexts, 0, params), make([]store.Text, 0, texts)}
}

// add adds a text of a parameter. parts are the parts of the parameter, if any.
func (t *textsOfParams) add(param string, parts []string, text store.Text) {
	text.Folded, text.Original = validText(text.Folded), validText(text.Original)
	i := t.index(param)
	if i < 0 {
		i = len(t.params)
		if i > 0 { // the texts of the last parameter must not grow into those of this one
			last := &t.params[i-1]
			last.texts = slices.Clip(last.texts)
		}
		t.params = append(t.params, paramTexts{param: param, parts: parts, texts: t.free})
	}
	p := &t.params[i]
	p.texts = append(p.texts, text)
	if i+1 == len(t.params) {
		t.free = p.texts[len(p.texts):]
	}
}

// index returns the index of a parameter, or -1 if it has no texts.
func (t *textsOfParams) index(param string) int {
	for i := range t.params {
		if t.params[i].param == param {
			return i
		}
	}
	return -1
}

func (t *textsOfParams) of(param string) []store.Text {
	if i := t.index(param); i >= 0 {
		return t.params[i].texts
	}
	return nil
}

// addTexts adds the rows of ix_text and the column vals.
func (r *Rows) addTexts(typeName string, all *textsOfParams) {
	texts, size := 0, 0
	for i := range all.params {
		p := &all.params[i]
		sortUnique(&p.texts, compareTexts)
		texts += len(p.texts)
		for _, text := range p.texts {
			size += len(text.Folded) + maxTextOverhead
		}
	}
	r.indexed, r.Vals = make([]indexedTextRow, 0, texts), make([]byte, 0, size)
	var originals []byte
	for i := range all.params {
		p := &all.params[i]
		key, own := TextKey(typeName, p.param), p.texts
		if len(p.parts) > 0 {
			own = slices.DeleteFunc(slices.Clone(own), func(text store.Text) bool {
				return slices.ContainsFunc(p.parts, func(part string) bool {
					_, found := slices.BinarySearchFunc(all.of(part), text, compareTexts)
					return found
				})
			})
		}
		p.begin = len(r.indexed)
		for i, text := range own {
			originals = r.packText(key, text, i+1 == len(own), originals)
			val := IndexedText(text.Folded)
			isKnown := len(r.indexed) > p.begin && r.indexed[len(r.indexed)-1].val == val
			if !isKnown && !isTextOf(all, p.parts, val) {
				r.indexed = append(r.indexed, indexedTextRow{key: key, val: val, facets: r.textFacets})
			}
		}
		p.end = len(r.indexed)
	}
	r.Vals = append(r.Vals, originals...)
	for _, p := range all.params {
		isUnion := len(p.parts) > 0
		r.markTextEnd(all, p, p.texts[0], TextEndMark(isUnion, false))
		r.markTextEnd(all, p, p.texts[len(p.texts)-1], TextEndMark(isUnion, true))
	}
}

// markTextEnd sets a mark in the row of ix_text of a text of a parameter. The row has the key of the
// parameter or of one of its parts.
func (r *Rows) markTextEnd(all *textsOfParams, of paramTexts, end store.Text, mark int64) {
	val := IndexedText(end.Folded)
	if r.markText(of, val, mark) {
		return
	}
	for _, part := range of.parts {
		if i := all.index(part); i >= 0 && r.markText(all.params[i], val, mark) {
			return
		}
	}
}

// markText sets a mark in the row of a val of a parameter. It reports whether there is one.
func (r *Rows) markText(of paramTexts, val string, mark int64) bool {
	rows := r.indexed[of.begin:of.end]
	i, found := slices.BinarySearchFunc(rows, val, func(row indexedTextRow, val string) int { return strings.Compare(row.val, val) })
	if found {
		rows[i].facets |= mark
	}
	return found
}

// isTextOf reports whether one of the parameters has a text with a val. The texts are sorted.
func isTextOf(all *textsOfParams, params []string, val string) bool {
	return slices.ContainsFunc(params, func(param string) bool {
		texts := all.of(param)
		at, _ := slices.BinarySearchFunc(texts, store.Text{Folded: val}, compareTexts)
		return at < len(texts) && IndexedText(texts[at].Folded) == val
	})
}

// packText appends a text to Vals, and its original text to originals if it differs. It adds the
// signature of the text to that of the record.
func (r *Rows) packText(key int32, text store.Text, isLast bool, originals []byte) []byte {
	r.Signature = r.Signature.With(TextSignature(key, text.Folded))
	if isLast {
		r.Vals = append(r.Vals, lastOfKey)
	}
	r.Vals = appendKeyCode(append(r.Vals, startOfText), key)
	if text.Original == text.Folded {
		r.Vals = append(r.Vals, isOriginal)
	} else {
		r.Vals = append(r.Vals, isFolded)
		originals = appendKeyCode(append(originals, startOfOriginal), key)
		originals = append(append(originals, text.Original...), endOfText)
	}
	r.Vals = append(append(r.Vals, text.Folded...), endOfText)
	if isLast {
		r.Vals = append(r.Vals, endOfKey)
	}
	return originals
}

// TextPatterns returns LIKE patterns for vals. vals matches one of them if a text of a key meets a
// condition. It returns none for store.Contains.
func TextPatterns(key int32, is store.TextIs) [][]byte {
	text := validText(is.Text)
	same := textPattern(startOfText, key, isOriginal, text)
	original := textPattern(startOfOriginal, key, 0, text)
	switch is.Match {
	case store.StartsWith:
		return [][]byte{append(textPattern(startOfText, key, '_', text), '%')}
	case store.Exactly:
		return [][]byte{append(same, endOfText, '%'), append(original, endOfText, '%')}
	case store.StartsExactly:
		return [][]byte{append(same, '%'), append(original, '%')}
	default:
		return nil
	}
}

// PresencePattern returns the LIKE pattern that vals matches if there is a text of a key.
func PresencePattern(key int32) []byte { return append(textPattern(startOfText, key, 0, ""), '%') }

// textPattern returns a LIKE pattern of a text that begins with start, key and flag. A flag of 0 is
// left out.
func textPattern(start byte, key int32, flag byte, text string) []byte {
	pattern := appendKeyCode([]byte{'%', start}, key)
	if flag != 0 {
		pattern = append(pattern, flag)
	}
	return append(pattern, likeEscapes.Replace(text)...)
}

var likeEscapes = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// ContainedPattern returns the LIKE pattern of a text among the texts of a key (TextStart, KeyEnd).
func ContainedPattern(text string) []byte {
	return []byte("%" + likeEscapes.Replace(validText(text)) + "%")
}

// TextStart returns the bytes that come before a text of a key in vals: the least text, or the
// greatest one if greatest is true. distance is the number of bytes from the beginning of start to
// the text.
func TextStart(key int32, greatest bool) (start []byte, distance int) {
	if greatest {
		start = append(start, lastOfKey)
	}
	start = appendKeyCode(append(start, startOfText), key)
	return start, len(start) + 1
}

// The bytes that end a text, and all texts of a key.
var (
	TextEnd = []byte{endOfText}
	KeyEnd  = []byte{endOfKey}
)
