package selftest

import (
	"sync"
	"time"
)

// Neighbour keeps the number of CPUs busy for the share of the time during one period, sleeps
// during the next, and so on until stop is called.
func Neighbour(cpus int, share float64, period time.Duration) (stop func()) {
	const beat = 5 * time.Millisecond
	work := time.Duration(share * float64(beat))
	done := make(chan struct{})
	var all sync.WaitGroup
	for range cpus {
		all.Go(func() {
			for begin := time.Now(); ; {
				select {
				case <-done:
					return
				default:
				}
				pause := beat
				if time.Since(begin)%(2*period) < period {
					for until := time.Now().Add(work); time.Now().Before(until); {
					}
					pause -= work
				}
				time.Sleep(pause)
			}
		})
	}
	return func() { close(done); all.Wait() }
}
