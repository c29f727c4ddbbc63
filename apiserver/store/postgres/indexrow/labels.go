package indexrow

import (
	"math"

	"github.com/paddock-health/paddock/apiserver/store"
)

// LinkWidth is the number of elements of a link in the array of the column links: the key of its
// parameter, the self of its target and the hash of its base URL.
const LinkWidth = 3

// Labels returns the hashes of a record's labels, and its links in the form of the column links.
func (x *Indexer) Labels(typeName string, values []store.IndexValue) (labels, links []int64) {
	found := x.Extractor.Labels(typeName, values)
	for _, name := range found.Names {
		labels = append(labels, x.Hash.Label(name))
	}
	for _, link := range found.Links {
		target, base := x.Hash.Target(link.To)
		links = append(links, x.Hash.Param(typeName, link.Param), target, base)
	}
	return labels, links
}

// LabelledColumn returns the value of the column labelled: the lower 31 bits of the checksum of the
// record's index rows, which is in the column ixsum. An update by a release without labels changes
// only ixsum. So the columns differ, and the labels are ignored, until the record is reindexed.
func LabelledColumn(sum int64) int32 { return int32(sum & math.MaxInt32) }
