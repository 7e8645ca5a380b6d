package vm

// IsPath reports whether Find's spec is the path of an image, and not a version or the default.
func IsPath(spec string) bool { return spec != "" && !isVersion(spec) }
