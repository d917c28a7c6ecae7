package main

import (
	"encoding/binary"
	"fmt"
	"slices"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

// asked is a statement as a policy looks at it. The driver has no function that tells the replicas of a key, but its
// token-aware policy can be asked which hosts it would try for a statement: the replicas come first, in its order.
type asked struct {
	keyspace string
	key      []byte
}

func (a asked) GetRoutingKey() ([]byte, error) { return a.key, nil }
func (a asked) Keyspace() string               { return a.keyspace }
func (a asked) Table() string                  { return "rows" }
func (a asked) IsIdempotent() bool             { return true }
func (a asked) GetHostID() string              { return "" }
func (a asked) Statement() gocql.Statement     { return nil }

func replicas(policy gocql.HostSelectionPolicy, row row) []string {
	next := policy.Pick(asked{row.keyspace, binary.BigEndian.AppendUint32(nil, uint32(row.key))})
	var found []string
	for range row.replicas {
		if host := next(); host != nil {
			found = append(found, host.Info().ConnectAddress().String())
		}
	}
	return found
}

// tokensOfHostsUp gives the tokens of each address, sorted.
func tokensOfHostsUp(session *gocql.Session) map[string][]string {
	found := map[string][]string{}
	for _, host := range session.GetHosts() {
		if host.IsUp() {
			found[host.ConnectAddress().String()] = slices.Sorted(slices.Values(host.Tokens()))
		}
	}
	return found
}

func findsReplicas(session *gocql.Session, policy gocql.HostSelectionPolicy, rows []row) {
	owned := 0
	for _, row := range rows {
		name := fmt.Sprintf("row %d of %s", row.key, row.keyspace)
		found := replicas(policy, row)
		check(slices.Equal(found, row.replicas), "replicas of %s: got %v, expected %v", name, found, row.replicas)
		if len(row.replicas) > 1 {
			continue
		}
		insert := session.Query("INSERT INTO "+row.keyspace+".rows (id, v) VALUES (?, ?)", row.key, "v").Iter()
		host := insert.Host().ConnectAddress().String()
		must(insert.Close())
		check(host == row.replicas[0], "who was asked for %s: got %s, expected %v", name, host, row.replicas)
		owned++
	}
	check(owned > 0, "there are rows with one replica")
	fmt.Printf("ok: replicas of %d rows, %d sent to their only one\n", len(rows), owned)
}
