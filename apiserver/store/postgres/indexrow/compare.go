package indexrow

import (
	"cmp"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// The orders of index rows, which are those of the first columns of their indexes, and of paths and texts.
// Each function returns at the first field that differs. cmp.Or would compare all fields.

func compareTokens(a, b tokenRow) int {
	if a.key != b.key {
		return cmp.Compare(a.key, b.key)
	}
	if a.code != b.code {
		return cmp.Compare(a.code, b.code)
	}
	if a.sys != b.sys {
		return cmp.Compare(a.sys, b.sys)
	}
	return cmp.Compare(a.of, b.of)
}

func compareReferences(a, b referenceRow) int {
	if a.tgt != b.tgt {
		return cmp.Compare(a.tgt, b.tgt)
	}
	if a.key != b.key {
		return cmp.Compare(a.key, b.key)
	}
	if a.base != b.base {
		return cmp.Compare(a.base, b.base)
	}
	return cmp.Compare(a.of, b.of)
}

func compareTextRows(a, b textRow) int {
	if a.key != b.key {
		return cmp.Compare(a.key, b.key)
	}
	if byVal := strings.Compare(a.val, b.val); byVal != 0 {
		return byVal
	}
	if a.more != b.more {
		return cmp.Compare(a.more, b.more)
	}
	return cmp.Compare(a.of, b.of)
}

func compareIndexedTexts(a, b indexedTextRow) int {
	if a.key != b.key {
		return cmp.Compare(a.key, b.key)
	}
	if byVal := strings.Compare(a.val, b.val); byVal != 0 {
		return byVal
	}
	return cmp.Compare(a.of, b.of)
}

func comparePeriods(a, b periodRow) int {
	if a.key != b.key {
		return cmp.Compare(a.key, b.key)
	}
	if a.lo != b.lo {
		return cmp.Compare(a.lo, b.lo)
	}
	if a.hi != b.hi {
		return cmp.Compare(a.hi, b.hi)
	}
	return cmp.Compare(a.of, b.of)
}

func comparePoints(a, b pointRow) int {
	if a.key != b.key {
		return cmp.Compare(a.key, b.key)
	}
	if a.lat != b.lat {
		return cmp.Compare(a.lat, b.lat)
	}
	if a.lon != b.lon {
		return cmp.Compare(a.lon, b.lon)
	}
	return cmp.Compare(a.of, b.of)
}

func comparePaths(a, b ReferencePath) int {
	if byType := strings.Compare(a.Type, b.Type); byType != 0 {
		return byType
	}
	if byParam := strings.Compare(a.Param, b.Param); byParam != 0 {
		return byParam
	}
	return strings.Compare(a.Target, b.Target)
}

func compareTexts(a, b store.Text) int {
	if byFolded := strings.Compare(a.Folded, b.Folded); byFolded != 0 {
		return byFolded
	}
	return strings.Compare(a.Original, b.Original)
}
