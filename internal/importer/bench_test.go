package importer

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
)

// BenchmarkImport imports a tree as large as the published one: 23
// configurations, three runs, about 6,000 files.
func BenchmarkImport(b *testing.B) {
	dir := b.TempDir()
	configs := []string{"baremetal"}
	for i := range 22 {
		configs = append(configs, fmt.Sprintf("cni-%d", i))
	}
	study{configs: configs, rounds: 3, intervals: 61, recorded: 23, snapshots: 80}.write(b, dir)
	b.ReportAllocs()
	b.ResetTimer()
	i := 0
	for b.Loop() {
		i++
		sum, err := Import(context.Background(), "infrabuilder", dir, filepath.Join(b.TempDir(), fmt.Sprint(i)), Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(sum.Bytes)
		b.ReportMetric(float64(sum.Files), "files")
	}
}
