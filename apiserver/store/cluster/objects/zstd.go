package objects

import "github.com/klauspost/compress/zstd"

// encoder and decoder are shared by the whole process, because they are safe for concurrent use and
// their tables are expensive to make.
var (
	encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	decoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(64<<20))
)

// Compress compresses text with zstd (RFC 8878). It appends the compressed text to frames, and
// returns the result.
func Compress(text, frames []byte) []byte { return encoder.EncodeAll(text, frames) }

// Decompress returns the concatenated texts of frames. It fails if the texts have more than 64 MiB.
func Decompress(frames []byte) ([]byte, error) { return decoder.DecodeAll(frames, nil) }
