package vm

// IsPath says whether what Find is asked for is the path of an image, rather than
// a version or the default.
func IsPath(spec string) bool { return spec != "" && !isVersion(spec) }
