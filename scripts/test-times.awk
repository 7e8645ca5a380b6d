# Of the lines of go test -json: package, seconds, test, result.
/"Action":"(pass|fail|skip)"/ {
	split("", value)
	for (i = 2; i < NF; i += 2)
		if ($(i + 1) == ":") value[$i] = $(i + 2)
	seconds = $0
	sub(/.*"Elapsed":/, "", seconds)
	printf "%-60s %8.1f %s %s\n", value["Package"], seconds, value["Test"], value["Action"]
}
