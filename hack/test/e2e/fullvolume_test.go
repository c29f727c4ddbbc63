//go:build linux

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const firNamespace = "clinic-fir"

// describeFullVolume are the specs of a site whose database runs out of room.
func describeFullVolume() {
	It("goes on reading while a database's volume is full, and writes again when it is not", func(ctx SpecContext) {
		apply(ctx, "full-volume.yaml")
		awaitSites(ctx, "fir")
		fir, other := newClient(ctx, "fir"), newClient(ctx, "oak")
		var acknowledged []string
		attempts := 0
		put := func() (int, error) {
			id := fmt.Sprintf("rex-%d", attempts)
			attempts++
			status, _, err := fir.put(ctx, id, "Smith")
			if status == http.StatusCreated {
				acknowledged = append(acknowledged, id)
			}
			return status, err
		}
		Eventually(ctx, put).Should(Equal(http.StatusCreated))

		// Not by the pod, whose memory it would be: the volume is a tmpfs.
		filler := filepath.Join(node.BoundedVolume(), "filler")
		Expect(fill(filler)).To(Succeed())
		Eventually(ctx, put).WithPolling(10 * time.Millisecond).Should(Equal(http.StatusServiceUnavailable))
		// Nothing that cannot be recorded is served, unless the site says otherwise.
		var status int
		var answer []byte
		var err error
		Eventually(ctx, func() (string, error) {
			_, answer, err = fir.send(ctx, http.MethodGet, "patient?family=Smith", "")
			return string(answer), err
		}).WithPolling(10 * time.Millisecond).Should(ContainSubstring("audit_unavailable"))
		kubectl(ctx, "patch", "site", "fir", "-n", firNamespace, "--type=merge", "-p", `{"spec":{"audit":{"onFailure":"Continue"}}}`)
		Eventually(ctx, func() (string, error) { return fir.family(ctx, acknowledged[0]) }).Should(Equal("Smith"))
		for _, id := range acknowledged {
			Expect(fir.family(ctx, id)).To(Equal("Smith"))
		}
		status, answer, err = fir.send(ctx, http.MethodGet, "patient?family=Smith&_total=accurate", "")
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(http.StatusOK))
		// Writes that could not be recorded may have happened.
		var found struct{ Total int }
		Expect(json.Unmarshal(answer, &found)).To(Succeed())
		Expect(found.Total).To(And(BeNumerically(">=", len(acknowledged)), BeNumerically("<=", attempts)))
		// What a refused entry left free on a page takes another row; then there is no room again.
		Eventually(ctx, put).WithPolling(10 * time.Millisecond).Should(Equal(http.StatusServiceUnavailable))
		status, answer, err = other.put(ctx, "rex", "Smith")
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(http.StatusOK), string(answer))

		Expect(os.Remove(filler)).To(Succeed())
		Eventually(ctx, put).Should(Equal(http.StatusCreated))
		for _, id := range acknowledged {
			Expect(fir.family(ctx, id)).To(Equal("Smith"))
		}
		AddReportEntry("full volume", fmt.Sprintf("%d writes acknowledged before, none lost", len(acknowledged)-1), ReportEntryVisibilityAlways)
		kubectl(ctx, "delete", "namespace", firNamespace, "--timeout=2m")
	}, NodeTimeout(6*time.Minute))
}

// fill writes to a new file until there is no room.
func fill(file string) error {
	filler, err := os.Create(file)
	if err != nil {
		return err
	}
	for err == nil {
		_, err = filler.Write(make([]byte, 1<<20))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return errors.Join(err, filler.Close())
	}
	return filler.Close()
}
