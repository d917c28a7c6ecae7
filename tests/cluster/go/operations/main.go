// Requests with ids while nodes are killed, by the Go driver: each is done once. See docs/operation-ids.md.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

const (
	keyspace = "operations_go"
	workers  = 16
	// An id is good for five minutes.
	patience = 2 * time.Minute
)

var repeats atomic.Int64

func main() {
	session := connect()
	defer session.Close()
	for _, text := range []string{
		"CREATE KEYSPACE " + keyspace + " WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 3}",
		"CREATE TABLE " + keyspace + ".visits (page text PRIMARY KEY, count counter)",
		"CREATE TABLE " + keyspace + ".accounts (name text PRIMARY KEY, version int)",
	} {
		must(session.Query(text).Exec())
	}
	fmt.Println("ready")
	end := time.Now().Add(seconds())
	least := int64(seconds().Seconds() * workers)
	var wanted atomic.Int64
	var working sync.WaitGroup
	for worker := range workers {
		working.Go(func() { wanted.Add(work(session, fmt.Sprintf("account %d", worker), end)) })
	}
	working.Wait()
	var counted int64
	untilAnswered(func() error {
		return session.Query("SELECT count FROM " + keyspace + ".visits WHERE page = 'front'").Scan(&counted)
	})
	if wanted.Load() < least {
		fail("only %d visits in %s", wanted.Load(), seconds())
	}
	if counted != wanted.Load() {
		fail("%d visits instead of %d", counted, wanted.Load())
	}
	fmt.Printf("ok: %d operations, each done once; %d were asked again by the application\n", 2*counted, repeats.Load())
}

func connect() *gocql.Session {
	_, port, _ := strings.Cut(os.Getenv("PERISTYLE_ADDRESS"), ":")
	cluster := gocql.NewCluster("127.0.0.1", "127.0.0.2", "127.0.0.3")
	cluster.Port, _ = strconv.Atoi(port)
	cluster.PoolConfig.HostSelectionPolicy = gocql.TokenAwareHostPolicy(gocql.DCAwareRoundRobinPolicy("datacenter1"))
	cluster.Consistency = gocql.Quorum
	// With an id it may be sent again, and to several nodes at once.
	cluster.DefaultIdempotence = true
	cluster.RetryPolicy = &gocql.SimpleRetryPolicy{NumRetries: 3}
	cluster.ReconnectInterval = time.Second
	cluster.Timeout = 10 * time.Second
	session, err := cluster.CreateSession()
	must(err)
	return session
}

// work counts visits, and up the version of an account that nobody else changes; it returns how often.
func work(session *gocql.Session, name string, end time.Time) int64 {
	change(session, "INSERT INTO "+keyspace+".accounts (name, version) VALUES (?, 0) IF NOT EXISTS", name)
	version := int64(0)
	for time.Now().Before(end) {
		version++
		count := named(session.Query("UPDATE " + keyspace + ".visits SET count = count + 1 WHERE page = 'front'"))
		untilAnswered(count.Exec)
		change(session, "UPDATE "+keyspace+".accounts SET version = ? WHERE name = ? IF version = ?", version, name, version-1)
	}
	return version
}

// change must be applied: a refusal would be against our own change.
func change(session *gocql.Session, text string, values ...any) {
	query := named(session.Query(text, values...))
	untilAnswered(func() error {
		row := map[string]any{}
		applied, err := query.MapScanCAS(row)
		if err == nil && !applied {
			fail("%s %v: %v", text, values, row)
		}
		return err
	})
}

// named gives a request the name of an operation: it goes with every attempt, those of the driver and our own.
func named(query *gocql.Query) *gocql.Query {
	id := gocql.TimeUUID()
	speculation := &gocql.SimpleSpeculativeExecution{NumAttempts: 1, TimeoutDelay: 50 * time.Millisecond}
	return query.CustomPayload(map[string][]byte{"operation-id": id[:]}).SetSpeculativeExecutionPolicy(speculation)
}

func untilAnswered(ask func() error) {
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		err := ask()
		if err == nil {
			return
		}
		// It may be done, or not: asked again under its id, it is not done again.
		repeats.Add(1)
		if time.Now().After(end) {
			fail("no answer: %v", err)
		}
	}
}

func seconds() time.Duration {
	if value, err := strconv.ParseFloat(os.Getenv("PERISTYLE_SECONDS"), 64); err == nil {
		return time.Duration(value * float64(time.Second))
	}
	return 5 * time.Second
}

func must(err error) {
	if err != nil {
		fail("%v", err)
	}
}

func fail(format string, values ...any) {
	fmt.Printf("failed: "+format+"\n", values...)
	os.Exit(1)
}
