package workload

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/text"
)

// Params are a step's parameters, complete and of the types of the workload's
// defaults.
type Params map[string]any

// Complete checks the given parameters against the workload's and fills in the
// defaults. The error for an unknown name says the nearest name, the error for a wrong
// type the wanted type. A parameter whose default is a float64 can also be a share of
// the capacity, "30%"; it stays a string until bench.Calibrate resolves it.
func Complete(info Info, given map[string]any) (Params, error) {
	p := make(Params, len(info.Params))
	names := make([]string, len(info.Params))
	for i, param := range info.Params {
		names[i] = param.Name
		p[param.Name] = param.Default
	}
	for name, value := range given {
		want, known := p[name]
		if !known {
			return nil, text.Unknown(info.Name+" parameter", name, names)
		}
		v, err := convert(value, want)
		if err != nil {
			return nil, fmt.Errorf("%s parameter %s: %w", info.Name, name, err)
		}
		p[name] = v
	}
	return p, nil
}

// ParseParam reads a parameter's value from a command line. Its errors are those of
// Complete.
func ParseParam(info Info, name, text string) (any, error) {
	given := any(text)
	for _, param := range info.Params {
		if param.Name != name {
			continue
		}
		switch param.Default.(type) {
		case int, float64:
			if v, err := strconv.ParseFloat(text, 64); err == nil {
				given = v
			}
		case bool:
			if v, err := strconv.ParseBool(text); err == nil {
				given = v
			}
		}
	}
	p, err := Complete(info, map[string]any{name: given})
	return p[name], err
}

func convert(value, want any) (any, error) {
	switch want.(type) {
	case int:
		switch v := value.(type) {
		case int:
			return v, nil
		case int64:
			return int(v), nil
		case uint64:
			return int(v), nil
		case float64:
			if v == float64(int(v)) {
				return int(v), nil
			}
		}
		return nil, fmt.Errorf("want a whole number, have %v", value)
	case float64:
		switch v := value.(type) {
		case int:
			return float64(v), nil
		case int64:
			return float64(v), nil
		case uint64:
			return float64(v), nil
		case float64:
			return v, nil
		case string:
			if _, ok := Share(v); ok {
				return v, nil
			}
		}
		return nil, fmt.Errorf("want a number or a share such as 30%%, have %v", value)
	case string:
		if v, ok := value.(string); ok {
			return v, nil
		}
		return nil, fmt.Errorf("want text, have %v", value)
	case bool:
		if v, ok := value.(bool); ok {
			return v, nil
		}
		return nil, fmt.Errorf("want true or false, have %v", value)
	}
	panic(fmt.Sprintf("workload parameter of type %T", want))
}

// Share reads "30%" as 0.3.
func Share(v any) (float64, bool) {
	s, ok := v.(string)
	if !ok || !strings.HasSuffix(s, "%") {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
	if err != nil || f <= 0 || f > 1000 {
		return 0, false
	}
	return f / 100, true
}

// Int returns the parameter of that name, a whole number.
func (p Params) Int(name string) int { return p[name].(int) }

// Float returns the parameter of that name, a number; a share must have been resolved.
func (p Params) Float(name string) float64 { return p[name].(float64) }

// String returns the parameter of that name, a text.
func (p Params) String(name string) string { return p[name].(string) }

// Bool returns the parameter of that name, true or false.
func (p Params) Bool(name string) bool { return p[name].(bool) }
