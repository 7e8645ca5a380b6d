package load

import "time"

// reset makes e ready for a slice. Only the connections and the guard's lead stay from
// the previous slice.
func (e *engine) reset(cfg Config, start time.Time) {
	e.cfg, e.start, e.plan = cfg, start, newSchedule(cfg, int64(e.thread))
	e.begin, e.end = int64(cfg.Warmup), int64(cfg.Warmup+cfg.window())
	e.rotateAt = e.begin + int64(time.Second)
	e.rec = e.seconds.next(0)
	e.res = newResult()
	e.res.Reopened, e.res.Steps = e.reopened, newSteps(cfg.Steps)
	e.pending, e.begun, e.ended, e.wakeAt, e.spinUntil = 0, false, false, 0, 0
	e.lag, e.guard.pausedUntil, e.guard.lostSince, e.guard.lost = lag{}, 0, 0, 0
	for i := range e.conns {
		e.conns[i].freeAt, e.conns[i].since = 0, 0
	}
}

// restore opens again the connections that were lost since the last slice, or that still
// wait for a response.
func (e *engine) restore() error {
	dialed := func() (n int64) { // connections opened so far
		for i := range e.conns {
			n += int64(e.conns[i].generation)
		}
		return n
	}
	before := dialed()
	for i := e.lists[busy].head; i >= 0; i = e.lists[busy].head {
		e.drop(&e.conns[i])
		e.conns[i].measured = false
		e.move(i, down, e.now())
	}
	for {
		events, err := e.poll.wait(0)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			break
		}
		e.handle(events)
	}
	err := e.life.prepare(e)
	e.reopened = dialed() - before
	return err
}

// advance begins and ends the window and its seconds at their times, and says whether
// the slice is over.
func (e *engine) advance(now int64) (over bool) {
	if !e.begun && now >= e.begin {
		e.begun = true
		e.res.Begin = e.start.Add(time.Duration(e.begin))
		e.cpu, e.waited, e.spin.total = e.self.cpu(), e.self.waitTime(), 0
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
	if !e.ended || now < e.giveUp && (e.pending > 0 || e.cfg.open() && e.plan.due < e.end) {
		return false
	}
	e.recordMissed(now)
	e.seconds.full <- e.rec
	return true
}

// rotate gives the current second to the collector and begins the next.
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
	e.res.GeneratorSpin = e.spin.total.Seconds() / took
	e.res.GeneratorCPU = max(0, (e.self.cpu()-e.cpu-e.spin.total).Seconds()/took)
	e.res.GeneratorWait = (e.self.waitTime() - e.waited).Seconds() / took
	e.mark(ends)
}

func (e *engine) mark(m mark) {
	if e.marks != nil {
		e.marks <- m
	}
}
