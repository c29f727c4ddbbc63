package traffic

// Remembered returns the number of sites with samples.
func Remembered(r *Recorder) int { return len(r.sites) }
