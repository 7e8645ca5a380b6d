package load

import "time"

// turn begins and ends the window and its seconds when it is time, and says
// when all is over.
func (e *engine) turn(now int64) (over bool) {
	if !e.begun && now >= e.begin {
		e.begun = true
		e.res.Begin = e.start.Add(time.Duration(e.begin))
		e.cpu, e.waited, e.spun = e.self.cpu(), e.self.waited(), 0
		e.mark(begins)
	}
	if !e.begun {
		return false
	}
	for now >= e.rotateAt {
		e.rotate()
	}
	if !e.ended && (now >= e.end || e.stopped.Load()) {
		e.finish(now)
	}
	if !e.ended || now < e.giveUp && (e.pending > 0 || e.open() && e.plan.at < e.end) {
		return false
	}
	e.recordMissed(now)
	e.seconds.full <- e.rec
	return true
}

// rotate hands the current second over and begins the next.
func (e *engine) rotate() {
	t := e.rec.t
	e.seconds.full <- e.rec
	e.rec = e.seconds.next(t + 1)
	e.rotateAt += int64(time.Second)
}

// finish ends the window.
func (e *engine) finish(now int64) {
	e.ended = true
	if now < e.end {
		e.end = now
		e.res.Interrupted = true
	}
	e.giveUp = now + int64(drain)
	e.res.Elapsed = time.Duration(e.end - e.begin)
	took := time.Duration(now - e.begin).Seconds()
	e.res.GeneratorSpin = e.spun.Seconds() / took
	e.res.GeneratorCPU = max(0, (e.self.cpu()-e.cpu-e.spun).Seconds()/took)
	e.res.GeneratorWait = (e.self.waited() - e.waited).Seconds() / took
	e.mark(ends)
}

func (e *engine) mark(m mark) {
	if e.marks != nil {
		e.marks <- m
	}
}
