package sysmon

import (
	"encoding/json"
	"fmt"
	"math"
)

// IsAbsent says whether v is absent.
func (v Value) IsAbsent() bool { return math.IsNaN(float64(v)) }

// MarshalJSON gives null for an absent value. An infinity is an error.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.IsAbsent() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(v))
}

// UnmarshalJSON reads null as absent.
func (v *Value) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*v = Absent
		return nil
	}
	var f float64
	if err := json.Unmarshal(b, &f); err != nil {
		return fmt.Errorf("recorded value: %w", err)
	}
	*v = Value(f)
	return nil
}
