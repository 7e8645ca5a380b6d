package diagnose

// All lists the causes. The order is that of the excluded ones in a verdict.
func All() []Cause {
	return []Cause{
		offloadOff(),
		mtuExceeds(), mtuWastes(), mtuDiffers(),
		segmentsLost(), fragmentsLost(),
		loss(), delay(), rateLimited(),
		cpuThrottled(), cpuStarved(), oneCPU(), steal(),
		softnetDrops(), nicErrors(), qdiscDrops(),
		conntrackFull(), conntrackRaces(),
		rulesLong(), servicesMany(),
		windowLimited(),
		wrongPath(), encryption(),
		checksumErrors(), rpFilter(),
		dnsSlow(), proxyInPath(), policy(),
		hostToo(), usualCause(),
	}
}
