package load

// lag tells the engine's own delay of a send from the server's. A thread that
// loses its CPU for a while leaves a backlog: later requests find every connection
// busy, although the thread's absence is the cause of their wait. So an absence
// counts as the engine's own delay until the thread has caught up with the plan.
type lag struct {
	owed     int64 // nanoseconds by which sends are later than without the absences
	returned int64 // when the last absence ended
}

// of returns the engine's own delay of a request: planned is when the request was
// due, freeAt since when its connection was free, sent when it was sent. The own
// delay is at most the whole delay, sent - planned.
func (l *lag) of(planned, freeAt, sent int64) int64 {
	delay, could := sent-planned, max(planned, freeAt)
	own := sent - could
	if delay <= int64(LateAfter) {
		l.owed = 0
		return own
	}
	if own > int64(LateAfter) {
		// Several connections may have waited through one absence; it counts once.
		l.owed += sent - max(could, min(l.returned, sent))
		l.returned = sent
	}
	return max(own, min(delay, l.owed))
}

// late says whether the engine made a send late: its own delay is more than
// LateAfter, and at least as much as the part that the server caused.
func late(own, delay int64) bool { return own > int64(LateAfter) && 2*own >= delay }
