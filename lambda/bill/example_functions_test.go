package bill_test

import (
	"fmt"
	"time"

	"siafu/lambda/bill"
)

// The example of docs/lambda.md: 32,700 invocations of 100 ms with 1769 MB, and a machine
// for twenty minutes.
func ExampleFunctions() {
	i, err := bill.ParseInstance("c5n.2xlarge")
	if err != nil {
		panic(err)
	}
	for _, architecture := range []string{"x86_64", "arm64"} {
		tariff, err := bill.Architecture(architecture)
		if err != nil {
			panic(err)
		}
		f := bill.Functions{Tariff: tariff, Memory: 1769}
		for range 32_700 {
			f.Add(bill.FirstUsed, 0, 100*time.Millisecond)
		}
		fmt.Printf("%s: functions $%.3f, all $%.3f\n", architecture, f.USD(), f.USD()+i.USD(1, 20*60))
	}
	// Output:
	// x86_64: functions $0.101, all $0.245
	// arm64: functions $0.082, all $0.226
}
