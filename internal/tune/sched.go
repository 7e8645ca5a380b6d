package tune

// schedMigrationCost keeps tasks on their core for longer.
var schedMigrationCost = Setting{
	Name:    "sched-migration-cost",
	Summary: "the scheduler treats a task as cache-hot for 10 ms after it ran",
	Why:     "fewer moves of busy programs between cores",
	Studies: []string{"2016"},
	Source:  "kernel kernel/sched/fair.c, sysctl_sched_migration_cost; a sysctl until Linux 5.12, in debugfs since",
	Cost:    "load is balanced later: a core may be idle while another has two tasks",
	Avoid:   "with more busy programs than cores",
	Scope:   ScopeMachine,
	Params:  []Param{{"value", "10000000", "ns"}},
	Plan: func(f *Facts, p Params) (Proposal, error) {
		for _, place := range []Place{sysctl("kernel.sched_migration_cost_ns"), file("/sys/kernel/debug/sched/migration_cost_ns")} {
			if !f.has(place.Name) {
				continue
			}
			c, err := f.change(place, p["value"])
			return Proposal{Changes: []Change{c}}, err
		}
		return Proposal{}, &NotApplicable{
			Reason: "this kernel has neither kernel.sched_migration_cost_ns nor /sys/kernel/debug/sched/migration_cost_ns",
			Remedy: "mount debugfs: mount -t debugfs none /sys/kernel/debug",
		}
	},
}
