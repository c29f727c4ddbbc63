package main

import (
	"context"
	"fmt"

	"github.com/prometheus/procfs"
)

// fleetMemory is the resident memory of the processes of a fleet at several times.
type fleetMemory struct {
	in installation
	// recorded has the bytes of each process of processes, for each time.
	recorded [][]int
}

type namedProcess struct {
	name string
	pid  int
}

func (m *fleetMemory) processes() []namedProcess {
	processes := []namedProcess{{"controller", m.in.paddock.Controllers[0].Pid()}}
	for n, server := range m.in.paddock.APIServers {
		processes = append(processes, namedProcess{fmt.Sprintf("API server %d", n+1), server.Pid()})
	}
	return append(processes,
		namedProcess{"delivery process", m.in.paddock.Deliveries[0].Pid()},
		namedProcess{"kube-apiserver", m.in.cluster.APIServer().Pid()},
		namedProcess{"etcd", m.in.cluster.Etcd().Pid()})
}

// record records the memory of each process, after the programs have settled.
func (m *fleetMemory) record(ctx context.Context) error {
	if err := settle(ctx); err != nil {
		return err
	}
	var resident []int
	for _, named := range m.processes() {
		process, err := procfs.NewProc(named.pid)
		if err != nil {
			return fmt.Errorf("read the memory of %s: %w", named.name, err)
		}
		stat, err := process.Stat()
		if err != nil {
			return fmt.Errorf("read the memory of %s: %w", named.name, err)
		}
		resident = append(resident, stat.ResidentMemory())
	}
	m.recorded = append(m.recorded, resident)
	return nil
}

// tell prints the memory without Sites, with Sites that had no requests, and after requests to all
// Sites. For each of the last two, it also prints the difference to the memory without Sites, divided
// by the number of Sites.
func (m *fleetMemory) tell(sites int) error {
	fmt.Print("\n| resident memory | no Sites | at rest, without requests so far | for each Site | after requests to all | for each Site |\n|---|---|---|---|---|---|\n")
	const kibi, mebi = 1 << 10, 1 << 20
	for i, named := range m.processes() {
		without := m.recorded[0][i]
		fmt.Printf("| %s | %d MiB |", named.name, without/mebi)
		for _, recorded := range m.recorded[1:] {
			fmt.Printf(" %d MiB | %d KiB |", recorded[i]/mebi, (recorded[i]-without)/sites/kibi)
		}
		fmt.Println()
	}
	return nil
}
