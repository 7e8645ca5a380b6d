package load

// life decides how long connections live: for all requests of the load (kept) or for
// one request (once). The engine calls its methods when something happens to
// connection i.
type life interface {
	// prepare makes the connections that must exist before the load begins.
	prepare(e *engine) error
	// start sends the next request of connection i; once connects first.
	start(e *engine, i int32, now int64)
	// connected is called when the connection has been made.
	onConnect(e *engine, i int32, now int64)
	// answered is called when the response is complete; last says whether the server
	// closes the connection after it.
	onAnswer(e *engine, i int32, last bool, now int64)
	// failed is called when the connection has broken.
	onFailure(e *engine, i int32, now int64)
	// revive is called when a broken connection may be opened again.
	revive(e *engine, i int32, now int64)
}

// kept is the life of a connection that stays open, and is opened again after a
// failure.
type kept struct{}

func (kept) prepare(e *engine) error { return e.connectAll() }

func (kept) start(e *engine, i int32, now int64) { e.write(i, now) }

func (kept) onConnect(e *engine, i int32, now int64) {
	e.move(i, idle, now)
	e.conns[i].freeAt = now
}

func (kept) onAnswer(e *engine, i int32, last bool, now int64) {
	e.move(i, idle, now)
	if last {
		e.fail(i, Closed, now)
	}
}

func (k kept) onFailure(e *engine, i int32, now int64) {
	e.move(i, down, now)
	if e.conns[i].served { // without this condition, a connection that never works would be opened without a pause
		k.revive(e, i, now)
	}
}

func (kept) revive(e *engine, i int32, now int64) {
	if err := e.connect(i); err != nil {
		e.fail(i, Connect, now)
		return
	}
	e.move(i, connecting, now)
}

// once is the life of a connection that serves a single request.
type once struct{}

func (once) prepare(e *engine) error {
	for i := range e.conns {
		e.move(int32(i), idle, 0)
	}
	return nil
}

func (once) start(e *engine, i int32, now int64) {
	if err := e.connect(i); err != nil {
		e.fail(i, Connect, now)
	}
}

func (once) onConnect(e *engine, i int32, now int64) {
	if c := &e.conns[i]; c.measured {
		record(e.rec.connectTime, now-c.since)
	}
	e.write(i, now)
}

func (once) onAnswer(e *engine, i int32, _ bool, now int64) {
	e.drop(&e.conns[i])
	e.move(i, idle, now)
}

// onFailure makes a pause: without one, a closed loop would repeat a refused connection at once.
func (once) onFailure(e *engine, i int32, now int64) { e.move(i, down, now) }

func (once) revive(e *engine, i int32, now int64) {
	e.move(i, idle, now)
	e.conns[i].freeAt = now
}

// write sends the request of connection i.
func (e *engine) write(i int32, now int64) {
	c := &e.conns[i]
	if !send(c.fd, e.proto.request(c.seq)) {
		e.fail(i, Reset, now)
	}
}
