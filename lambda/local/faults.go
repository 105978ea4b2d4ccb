package local

import (
	"encoding/json"

	"siafu/lambda"
)

// Faults are the injected failures of invocations.
type Faults = lambda.Faults

// corrupted returns a request for a corrupt result. The function changes its result, because the
// service sees it only encrypted. Other payloads than requests are unchanged.
func corrupted(payload []byte) []byte {
	var request map[string]json.RawMessage
	if json.Unmarshal(payload, &request) != nil || request == nil {
		return payload
	}
	request["Corrupt"] = json.RawMessage("true")
	payload, _ = json.Marshal(request) // of parts that are JSON
	return payload
}
