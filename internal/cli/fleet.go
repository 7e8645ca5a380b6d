package cli

import (
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/analysis"
	"github.com/cnibench/cnibench/internal/cli/exit"
	"github.com/cnibench/cnibench/internal/strictyaml"
	"github.com/cnibench/cnibench/internal/text"
)

// costFlags are what carries the costs of a run over to a fleet.
type costFlags struct {
	fleet, prices string
	wattsPerCore  float64
}

func (f *costFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.fleet, "fleet", "", "estimate what each pod network costs a fleet: `nodes=N,gbps=G` for N nodes that each send G Gbit/s to pods on other nodes; add step=ID to use that step's CPU per Gbit/s")
	c.Flags().StringVar(&f.prices, "prices", "", "prices for --fleet, a YAML `FILE` with currency, core-month, gib-month, kwh")
	c.Flags().Float64Var(&f.wattsPerCore, "watts-per-core", 0, "power of a busy core in `watts`, to estimate energy where none was measured (default: no estimate)")
}

// options reads the flags into the analysis' options.
func (f *costFlags) options() (analysis.Options, error) {
	opt := analysis.Options{WattsPerCore: f.wattsPerCore}
	if f.wattsPerCore < 0 || f.wattsPerCore > 1e4 {
		return opt, exit.Usage("--watts-per-core %g: want between 0 and 10000, e.g. 5", f.wattsPerCore)
	}
	if f.fleet != "" {
		fleet, err := parseFleet(f.fleet)
		if err != nil {
			return opt, err
		}
		opt.Fleet = fleet
	}
	if f.prices == "" {
		return opt, nil
	}
	if opt.Fleet == nil {
		return opt, exit.Usage("--prices are a fleet's: say which with --fleet nodes=N,gbps=G")
	}
	prices, err := readPrices(f.prices)
	opt.Prices = prices
	return opt, err
}

// parseFleet reads nodes=1000,gbps=2 and, after it, step=dtm.
func parseFleet(s string) (*analysis.FleetSize, error) {
	var fleet analysis.FleetSize
	for _, part := range strings.Split(s, ",") {
		key, value, _ := strings.Cut(part, "=")
		var err error
		switch strings.TrimSpace(key) {
		case "nodes":
			fleet.Nodes, err = strconv.Atoi(value)
		case "gbps":
			fleet.Gbps, err = strconv.ParseFloat(value, 64)
		case "step":
			fleet.Step = value
		default:
			return nil, text.Unknown("key of --fleet", key, []string{"nodes", "gbps", "step"})
		}
		if err != nil {
			return nil, exit.Usage("--fleet %q: %q is no number", s, value)
		}
	}
	if fleet.Nodes < 1 || fleet.Nodes > 1e7 || !(fleet.Gbps > 0 && fleet.Gbps <= 1e5) {
		return nil, exit.Usage("--fleet %q: want e.g. nodes=1000,gbps=2", s)
	}
	return &fleet, nil
}

// priceFile is the form of --prices; what is left out costs nothing.
type priceFile struct {
	Currency  string  `yaml:"currency"`
	CoreMonth float64 `yaml:"core-month"`
	GiBMonth  float64 `yaml:"gib-month"`
	KWh       float64 `yaml:"kwh"`
}

func readPrices(path string) (*analysis.Prices, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, exit.With(exit.WrongUsage, err)
	}
	defer f.Close()
	var p priceFile
	if err := strictyaml.Decode(path, f, &p); err != nil {
		return nil, exit.With(exit.WrongUsage, err)
	}
	for key, price := range map[string]float64{"core-month": p.CoreMonth, "gib-month": p.GiBMonth, "kwh": p.KWh} {
		if !(price >= 0 && price <= 1e9) {
			return nil, exit.Usage("%s: %s %g: want a price of 0 or more", path, key, price)
		}
	}
	return &analysis.Prices{Currency: p.Currency, CoreMonth: p.CoreMonth, GiBMonth: p.GiBMonth, KWh: p.KWh}, nil
}
