package record

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// HideVariable removes a variable from the environment of later commands, and from
// /proc/PID/environ. That file shows every command of the same user the environment with
// which the process was started.
func HideVariable(name string) error {
	if _, set := os.LookupEnv(name); !set {
		return nil
	}
	if err := errors.Join(os.Unsetenv(name), overwriteVariable(name)); err != nil {
		return fmt.Errorf("hide %s from other processes: %w", name, err)
	}
	return nil
}

// overwriteVariable overwrites the text in the process' memory that
// /proc/PID/environ shows.
func overwriteVariable(name string) error {
	start, err := environStart()
	if err != nil {
		return err
	}
	env, err := os.ReadFile("/proc/self/environ")
	if err != nil {
		return err
	}
	memory, err := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer memory.Close()
	for variable := range bytes.SplitAfterSeq(env, []byte{0}) {
		if bytes.HasPrefix(variable, []byte(name+"=")) {
			if _, err := memory.WriteAt(make([]byte, len(variable)), start); err != nil {
				return err
			}
		}
		start += int64(len(variable))
	}
	return nil
}

// environStart returns the address of the environment: field 50 of /proc/PID/stat.
func environStart() (int64, error) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, err
	}
	// The name in parentheses may hold anything; the third field follows it.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 48 {
		return 0, errors.New("/proc/self/stat is too short")
	}
	return strconv.ParseInt(string(fields[47]), 10, 64)
}
