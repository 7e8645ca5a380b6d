package load

// lag separates the delay of a send that the engine caused from the delay that the
// server caused. A thread that loses its CPU for a while leaves a backlog: later
// requests find every connection busy, although the thread's absence makes them wait.
// So an absence counts as the engine's own delay until the thread has caught up with
// the plan.
type lag struct {
	owed     int64 // nanoseconds by which absences have delayed the sends
	returned int64 // when the last absence ended
}

// own returns the delay of a request that the engine caused: planned is when the
// request was due, freeAt since when its connection was free, sent when it was sent.
// The result is at most the whole delay, sent - planned.
func (l *lag) own(planned, freeAt, sent int64) int64 {
	delay, earliest := sent-planned, max(planned, freeAt)
	own := sent - earliest
	if delay <= int64(LateAfter) {
		l.owed = 0
		return own
	}
	if own > int64(LateAfter) {
		// Several connections may have waited through one absence; it counts once.
		l.owed += sent - max(earliest, min(l.returned, sent))
		l.returned = sent
	}
	return max(own, min(delay, l.owed))
}

// late says whether the engine made a send late: its own delay is more than
// LateAfter, and at least as much as the part that the server caused.
func late(own, delay int64) bool { return own > int64(LateAfter) && 2*own >= delay }
