//go:build cu

package commandline

import _ "siafu/cuda/driver/gorgonia" // replaces the implementation of package driver
