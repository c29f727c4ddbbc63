package localcluster

import (
	"context"
	"fmt"
	"path/filepath"
)

// Program is a program to run next to the control plane, such as one of Paddock's own.
type Program struct {
	// Name is the base name of the log and of the pid file. It must be unique in the cluster.
	Name string
	// Path is the path of the executable.
	Path string
	Args []string
	// Env is added to this process's environment.
	Env []string
	// Ready returns nil once the program serves.
	Ready func(context.Context) error
}

// StartProgram starts a program and returns when it serves. Cluster.Stop ends the program before the
// control plane. Tests can kill, pause and restart it. A second program of the same name is an error.
func (c *Cluster) StartProgram(ctx context.Context, program Program) (*Process, error) {
	for _, p := range c.programs {
		if p.name == program.Name {
			return nil, fmt.Errorf("start %s: a program with this name was started before: restart that program, or use another name", program.Name)
		}
	}
	if err := endOrphan(ctx, c.paths.child(program.Name), c.paths.root()); err != nil {
		return nil, err
	}
	if err := rotateLog(c.paths.log(program.Name)); err != nil {
		return nil, fmt.Errorf("put the log of the last start aside: %w", err)
	}
	p := &Process{
		command: command{name: program.Name, args: program.Args, ready: program.Ready},
		path:    program.Path,
		env:     program.Env,
		logFile: c.paths.log(program.Name),
		record:  c.paths.child(program.Name),
		parents: c.parents,
		out:     c.out,
	}
	c.programs = append(c.programs, p)
	return p, p.begin(ctx)
}

// Dir returns the folder that holds the state, for files that belong to it.
func (c *Cluster) Dir() string { return c.paths.root() }

// File returns the path of a file in Dir.
func (c *Cluster) File(name string) string { return filepath.Join(c.Dir(), name) }
