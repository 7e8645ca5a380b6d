//go:build linux

package wire

import "reflect"

// Share keeps a value for the other pieces of the same product: loaded
// programs, running daemons. The product has a type of its own for the value,
// and the fabric keeps one value of each type.
func Share[T any](f *Fabric, value T) {
	if f.shared == nil {
		f.shared = map[reflect.Type]any{}
	}
	f.shared[reflect.TypeFor[T]()] = value
}

// FindShared returns the value of that type which a piece has shared, if one has.
func FindShared[T any](f *Fabric) (value T, ok bool) {
	value, ok = f.shared[reflect.TypeFor[T]()].(T)
	return value, ok
}
