package config

import (
	"siafu/internal/fault"
	"siafu/lambda/bill"
)

// checkCost checks --instance and --budget.
func (c *Config) checkCost() error {
	if c.Instance != "" {
		if _, err := bill.ParseInstance(c.Instance); err != nil {
			return err
		}
	}
	if c.Budget == "" {
		return nil
	}
	if _, ok := bill.Dollars(c.Budget); !ok {
		return fault.New(fault.Usage, "train", "", "--budget=%q", c.Budget).Then("it must be dollars above 0, such as 2.50")
	}
	if c.Instance == "" && c.Tensor != TensorLambda {
		return fault.New(fault.Usage, "train", "", "--budget=%s, but no price is known", c.Budget).
			Then("set the price of a host with --instance")
	}
	return nil
}

// BudgetUSD returns the budget of the run in dollars, 0 if there is none.
func (c *Config) BudgetUSD() float64 {
	usd, ok := bill.Dollars(c.Budget)
	if !ok {
		return 0
	}
	f, _ := usd.Float64()
	return f
}
