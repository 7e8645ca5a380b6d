// Package fdtable gives threads file tables of their own. The limit on open
// files (RLIMIT_NOFILE) bounds each table, not the process: a process whose
// threads have one each can hold more connections than the limit where the
// limit can't be raised. It opens and closes nothing. Next: own_linux.go.
package fdtable
