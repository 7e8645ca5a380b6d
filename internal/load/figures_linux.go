package load

// recordMissed counts the requests without a response at the end, and records as their
// latency how long they have waited so far: the true latency is at least that.
func (e *engine) recordMissed(now int64) {
	for i := e.lists[busy].head; i >= 0; i = e.conns[i].next {
		if c := &e.conns[i]; c.measured {
			e.res.Missed++
			e.recordTimes(c, now)
			if s := e.step(c.planned); s != nil {
				s.Missed++
			}
		}
	}
	if !e.cfg.open() {
		return
	}
	for ; e.plan.due < e.end; e.plan.advance(int64(e.threads)) {
		if due := e.plan.due; due >= e.begin {
			e.res.Planned++
			e.res.Missed++
			record(e.rec.latency, now-due)
			if s := e.step(due); s != nil {
				s.Planned++
				s.Missed++
				record(s.Latency, now-due)
			}
		}
	}
}

// step returns the step of the ladder in which a request was planned, or nil
// without a ladder.
func (e *engine) step(planned int64) *Step {
	if len(e.res.Steps) == 0 {
		return nil
	}
	return &e.res.Steps[(planned-e.begin)/int64(e.cfg.Duration)]
}

// recordTimes records how long c's request took, or has taken so far: from its send
// (service time) and from its planned time (latency).
func (e *engine) recordTimes(c *conn, now int64) {
	took := now - c.since
	record(e.rec.serviceTime, took)
	if e.cfg.open() {
		record(e.rec.latency, now-c.planned)
	}
	if s := e.step(c.planned); s != nil {
		record(s.ServiceTime, took)
		record(s.Latency, now-c.planned)
	}
}

// countSend counts a request that was sent; own is the delay that the engine caused.
func (e *engine) countSend(planned, sent, own int64) {
	e.res.Sent++
	if !e.cfg.open() {
		return
	}
	e.res.Planned++
	record(e.rec.sendLag, own)
	isLate := late(own, sent-planned)
	switch {
	case isLate:
		e.res.Late++
	case sent-planned > int64(LateAfter):
		e.res.Queued++
	}
	if s := e.step(planned); s != nil {
		s.Planned++
		if isLate {
			s.Late++
		}
	}
}

// countError counts what went wrong with c's request.
func (e *engine) countError(c *conn, kind Kind) {
	e.res.Errors[kind]++
	e.rec.errors++
	if s := e.step(c.planned); s != nil {
		s.Errors++
	}
}

// countAnswer counts a good response to c's request.
func (e *engine) countAnswer(c *conn) {
	e.res.Requests++
	e.rec.requests++
	if s := e.step(c.planned); s != nil {
		s.Requests++
	}
}
