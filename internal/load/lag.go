package load

// lag tells the engine's own delay of a send from the server's. Whoever was
// away for a while, as a thread is that lost its CPU, leaves a backlog behind:
// its requests find every connection busy, and yet wait because of the
// absence. So an absence stays owed until the plan has been caught up with.
type lag struct {
	owed int64 // nanoseconds by which sends are later than without the absences
	back int64 // end of the last absence
}

// of is the own delay of a request that was planned for one time, had a
// connection that had been free since another, and was sent at a third. It is
// at most the whole delay, sent - planned.
func (l *lag) of(planned, freeAt, sent int64) int64 {
	delay, could := sent-planned, max(planned, freeAt)
	own := sent - could
	if delay <= int64(LateAfter) {
		l.owed = 0
		return own
	}
	if own > int64(LateAfter) {
		// Every connection that was free meanwhile sees the same absence.
		l.owed += sent - max(could, min(l.back, sent))
		l.back = sent
	}
	return max(own, min(delay, l.owed))
}

// late says that a send was late by the engine's fault: by more than LateAfter,
// and no less than by the server's, which had kept every connection busy.
func late(own, delay int64) bool { return own > int64(LateAfter) && 2*own >= delay }
