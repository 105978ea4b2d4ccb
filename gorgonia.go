//go:build cu

package main

import _ "siafu/cuda/driver/gorgonia" // replaces the calls of package driver
