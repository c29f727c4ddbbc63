package robustness

import (
	"time"

	"github.com/paddock-health/paddock/hack/test/robustness/history"
)

// Writers on the engine are processes of their own, so that they can be killed
// and stopped: this test binary, started with these variables. They take tasks on
// standard input and tell what happens on standard output, in lines of JSON.
const (
	childKubeconfig = "ROBUSTNESS_CHILD_KUBECONFIG"
	childNamespace  = "ROBUSTNESS_CHILD_NAMESPACE"
	childSiteKey    = "ROBUSTNESS_CHILD_SITE_KEY"
)

// task is one operation to do.
type task struct {
	Kind   history.Kind
	Record string
	Token  string
	Lines  []string
	// Whole asks a Read for the whole history.
	Whole bool
	Fault fault
}

// mischief is what happens to a writer in the middle of a task.
type mischief string

const (
	// die: the process is killed after a step.
	die mischief = "die"
	// sleep: the process is stopped after a step, until it is woken.
	sleep mischief = "sleep"
	// lose: the answer to a request that changes something in the cluster is lost.
	lose mischief = "lose"
	// hangUp: whoever asked for the task gives up on it behind such a request.
	hangUp mischief = "hang up"
)

// fault is a mischief and when it happens: after a step of the engine, or at the
// nth request. That is held up for a while first, and so many requests more get
// nowhere afterwards.
type fault struct {
	Do    mischief
	Step  string
	Nth   int
	Delay time.Duration
	More  int
}

// event is what a writer tells.
type event string

const (
	// ready: it takes tasks.
	ready event = "ready"
	// struck: a fault happens now.
	struck event = "struck"
	// done: the task has an answer.
	done event = "done"
)

// message is what a writer tells of its task.
type message struct {
	Event   event
	Outcome history.Outcome
	Unmet   bool
	Version int64
	UID     string
	Token   string
	Deleted bool
	Made    bool
	// Said names the answer in tallies.
	Said     string
	Versions []history.Version
}
