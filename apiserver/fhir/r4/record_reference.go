package r4

import "strings"

// SplitReference splits a literal reference to a record, such as Patient/1 or
// https://h.example/fhir/Patient/1/_history/2. base is empty for a relative reference. The version
// is dropped. In an absolute reference the type may also be the contract's segment, as in the fullUrl of
// an entry for clients of the contract. typeName is always FHIR's name. ok is false if the reference does
// not name a record of a resource type of R4. R4 references.html#literal.
func SplitReference(reference string) (base, typeName, id string, ok bool) {
	base, spelling, id, ok := splitReference(reference)
	if t, known := TypeOf(spelling); known && base != "" {
		spelling = t.Name
	}
	if _, known := resourceNamed([]byte(spelling)); !ok || !known {
		return "", "", "", false
	}
	return base, spelling, id, true
}

// SplitAddress is like SplitReference, but accepts only the supported types.
func SplitAddress(reference string) (base, typeName, id string, ok bool) {
	base, typeName, id, ok = SplitReference(reference)
	if _, known := TypeOf(typeName); !ok || !known {
		return "", "", "", false
	}
	return base, typeName, id, true
}

// splitReference splits a reference. It does not check the type.
func splitReference(reference string) (base, typeName, id string, ok bool) {
	record := reference
	if before, version, versioned := strings.Cut(reference, "/_history/"); versioned {
		if !ValidID(version) {
			return "", "", "", false
		}
		record = before
	}
	at := strings.LastIndexByte(record, '/')
	if at < 0 || !ValidID(record[at+1:]) {
		return "", "", "", false
	}
	rest, id := record[:at], record[at+1:]
	if slash := strings.LastIndexByte(rest, '/'); slash >= 0 {
		base, rest = rest[:slash], rest[slash+1:]
		scheme, host, isURL := strings.Cut(base, "://")
		if !isURL || scheme != "http" && scheme != "https" || host == "" {
			return "", "", "", false
		}
	}
	return base, rest, id, true
}
