package serve

// byteRequests counts the requests of size bytes that end within b, when had
// bytes of the first have come before, and says how many bytes of the next
// are there.
func byteRequests(size, had int, b []byte) (requests, rest int) {
	had += len(b)
	return had / size, had % size
}
