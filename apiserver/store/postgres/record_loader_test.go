package postgres

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestRecordLoader runs batches of several reads and shows that each read has its own result, and
// that an error of a batch is that of all its reads.
func TestRecordLoader(t *testing.T) {
	broken := errors.New("broken")
	found := func(_ context.Context, hashes []int64) (map[int64]readResult, error) {
		results := map[int64]readResult{}
		for _, hash := range hashes {
			switch hash {
			case 1, 2:
				results[hash] = readResult{record: &state{rid: 10 * hash}}
			case 3:
				results[hash] = readResult{err: broken}
			}
		}
		return results, nil
	}
	failed := func(context.Context, []int64) (map[int64]readResult, error) { return nil, broken }
	type result struct {
		rid int64 // 0: no record
		err error
	}
	for name, test := range map[string]struct {
		read recordReader
		want []result // of the hashes 1, 2, …
	}{
		"a batch":        {found, []result{{10, nil}, {20, nil}, {0, broken}, {0, nil}}},
		"a failed batch": {failed, []result{{0, broken}, {0, broken}}},
		"a panic": {
			func(context.Context, []int64) (map[int64]readResult, error) { panic("broken") },
			[]result{{0, errBatchPanicked}, {0, errBatchPanicked}},
		},
	} {
		var batch []*pendingRead
		for i := range test.want {
			batch = append(batch, &pendingRead{hash: int64(i + 1)})
		}
		func() {
			defer func() { _ = recover() }()
			test.read.run(t.Context(), batch)
		}()
		for i, want := range test.want {
			got := batch[i]
			if !errors.Is(got.err, want.err) || (got.record != nil) != (want.rid != 0) || got.record != nil && got.record.rid != want.rid {
				t.Errorf("%s, hash %d: got %+v, want %+v", name, got.hash, got.readResult, want)
			}
		}
	}
	loader := newRecordLoader(found, time.Second)
	for hash, want := range map[int64]error{1: nil, 3: broken, 4: nil} {
		record, err := loader.get(t.Context(), hash)
		if !errors.Is(err, want) || (record != nil) != (hash == 1) {
			t.Errorf("get(%d) = %v, %v", hash, record, err)
		}
	}
}
