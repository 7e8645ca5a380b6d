package main

import (
	"fmt"
	"math"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	speedFor  = 12 * time.Second
	speedSlot = 5 * time.Millisecond
)

// printSpeed prints, for each CPU, the Allan deviation of the speed of a loop that only
// counts: half of the mean square of the difference between neighbouring means, its root, as a
// share of the mean. It falls with the root of the time if each moment is as good as another,
// and stays if the CPU's speed has moods of every length, which no longer slice averages out.
func printSpeed() {
	fmt.Print("| CPU, counting alone |")
	over := []int{1, 5, 10, 20, 40, 80, 200}
	for _, n := range over {
		fmt.Printf(" %v |", time.Duration(n)*speedSlot)
	}
	fmt.Println("\n|---|---|---|---|---|---|---|---|")
	for cpu := range runtime.NumCPU() {
		speeds := count(cpu)
		fmt.Printf("| %d |", cpu)
		for _, n := range over {
			fmt.Printf(" %.1f %% |", 100*allan(speeds, n))
		}
		fmt.Println()
	}
	fmt.Println()
}

// count counts on the CPU and returns its speed in each slot, counts a second.
func count(cpu int) (speeds []float64) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with its affinity
		var set unix.CPUSet
		set.Set(cpu)
		if unix.SchedSetaffinity(0, &set) != nil {
			return
		}
		begin := time.Now()
		for at := begin; at.Sub(begin) < speedFor; {
			n, x := 0, uint64(1)
			now := at
			for ; now.Sub(at) < speedSlot; now = time.Now() {
				for range 1000 {
					x = x*6364136223846793005 + 1
				}
				n += int(x|1) & 1
			}
			speeds, at = append(speeds, float64(n)/now.Sub(at).Seconds()), now
		}
	}()
	<-done
	return speeds
}

// allan returns the Allan deviation of means of n neighbours, as a share of the mean.
func allan(values []float64, n int) float64 {
	var means []float64
	total := 0.0
	for i := 0; i+n <= len(values); i += n {
		sum := 0.0
		for _, v := range values[i : i+n] {
			sum += v
		}
		means, total = append(means, sum/float64(n)), total+sum/float64(n)
	}
	sum := 0.0
	for i := 1; i < len(means); i++ {
		sum += (means[i] - means[i-1]) * (means[i] - means[i-1]) / 2
	}
	return math.Sqrt(sum/float64(len(means)-1)) / (total / float64(len(means)))
}
