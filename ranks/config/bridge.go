package config

import (
	"net"
	"strings"

	"siafu/internal/fault"
)

// checkBridge returns a fault for addresses to which functions cannot connect.
func (c *Config) checkBridge() error {
	if c.Lambda == LambdaAWS && c.BridgeAddress == "" {
		return fault.New(fault.Usage, "train", "", "--tensor=%s --lambda=%q", c.Tensor, c.Lambda).
			Then("set --lambda address=ADDRESS too: functions connect to it")
	}
	for _, a := range c.bridge() {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return fault.New(fault.Usage, "train", "", "--lambda address=%s: %v", c.BridgeAddress, err).
				Then("give LISTEN or LISTEN,ADVERTISED, each host:port")
		}
	}
	return nil
}

// bridge returns the one or two addresses of --lambda address=ADDRESS, or none.
func (c *Config) bridge() []string {
	if c.BridgeAddress == "" {
		return nil
	}
	return strings.SplitN(c.BridgeAddress, ",", 2)
}

// Bridge returns the address to listen on and the address that functions connect to. An
// empty address leaves the choice to the endpoint.
func (c *Config) Bridge() (listen, advertise string) {
	a := append(c.bridge(), "", "")
	return a[0], a[1]
}
