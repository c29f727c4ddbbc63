package move

import "flag"

// full runs the long form, as `make move-full` does.
var full = flag.Bool("full", false, "whether to kill each program alone in each phase, and to move many records")
