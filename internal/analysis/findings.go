package analysis
func findings(e *evidence) []Finding { return []Finding{} }
