//go:build cu

package cli

import _ "siafu/cuda/driver/gorgonia" // replaces the calls of package driver
