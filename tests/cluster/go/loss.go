// The round of tests/cluster/README.md in which a node is lost, by the Go driver.
package main

import (
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

const (
	keyspace    = "loss_go"
	writerCount = 8
	readerCount = 16
	settleTime  = 30 * time.Second
	pollTime    = 100 * time.Millisecond
	// The node of the contact point: the driver's control connection goes with it.
	lost, lostAddress = "1", "127.0.0.1"
)

func main() {
	placed := readPlaces()
	session, policy := connect()
	defer session.Close()
	seesTheRing(session, placed.tokens)
	fmt.Printf("ok: %d hosts with their tokens\n", len(placed.tokens))
	findsReplicas(session, policy, placed.rows)
	must(session.Query("CREATE KEYSPACE " + keyspace +
		" WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 3}").Exec())
	must(session.Query("CREATE TABLE " + keyspace + ".rows (id int PRIMARY KEY, v text)").Exec())
	acknowledged := losesANode(session)
	seesTheRing(session, placed.tokens)
	hasAllRows(session, acknowledged)
}

func connect() (*gocql.Session, gocql.HostSelectionPolicy) {
	host, port, err := net.SplitHostPort(os.Getenv("PERISTYLE_ADDRESS"))
	must(err)
	cluster := gocql.NewCluster(host)
	cluster.Port, err = strconv.Atoi(port)
	must(err)
	policy := gocql.TokenAwareHostPolicy(gocql.DCAwareRoundRobinPolicy("datacenter1"))
	cluster.PoolConfig.HostSelectionPolicy = policy
	cluster.Consistency = gocql.Quorum
	cluster.DefaultIdempotence = true
	cluster.RetryPolicy = &gocql.SimpleRetryPolicy{NumRetries: 3}
	cluster.ReconnectInterval = time.Second
	cluster.Timeout = 10 * time.Second
	session, err := cluster.CreateSession()
	must(err)
	return session, policy
}

func seesTheRing(session *gocql.Session, tokens map[string][]string) {
	waitFor("all hosts are up, with our tokens", func() bool {
		return maps.EqualFunc(tokensOfHostsUp(session), tokens, slices.Equal)
	})
}

func losesANode(session *gocql.Session) []int32 {
	work := startWork(session)
	goesOn(work, "before")
	cluster("kill", lost)
	goesOn(work, "without node "+lost)
	waitFor("the driver sees that it is down", func() bool {
		_, isUp := tokensOfHostsUp(session)[lostAddress]
		return !isUp
	})
	cluster("start", lost)
	goesOn(work, "with it again")
	work.end()
	some := work.failures[:min(5, len(work.failures))]
	check(len(work.failures) == 0, "%d requests failed: %v", len(work.failures), some)
	return work.acknowledged
}

// goesOn sees rows written for a while.
func goesOn(work *work, when string) {
	before := work.acknowledgedCount()
	seconds, err := strconv.ParseFloat(os.Getenv("PERISTYLE_REST_SECONDS"), 64)
	must(err)
	time.Sleep(time.Duration(seconds * float64(time.Second)))
	written := work.acknowledgedCount() - before
	fmt.Printf("ok: %d rows written %s\n", written, when)
	check(written > 0, "rows are written %s", when)
}

func cluster(verb, node string) {
	command := exec.Command("sh", "-c", fmt.Sprintf("%s %s %s", os.Getenv("PERISTYLE_CLUSTER"), verb, node))
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	must(command.Run())
}

func waitFor(what string, condition func() bool) {
	end := time.Now().Add(settleTime)
	for !condition() {
		check(time.Now().Before(end), "%s", what)
		time.Sleep(pollTime)
	}
}

func check(condition bool, what string, facts ...any) {
	if !condition {
		fmt.Fprintf(os.Stderr, "failed: "+what+"\n", facts...)
		os.Exit(1)
	}
}

func must(err error) { check(err == nil, "%v", err) }
