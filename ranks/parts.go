package ranks

// GraphRanks is the number of ranks of a world of that size that own a
// partition, the others being parameter servers.
func (c *Config) GraphRanks(size int) (int, error) {
	k, err := c.servers(size)
	return size - k, err
}
