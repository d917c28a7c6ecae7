// The Go driver's calls for changes with a condition, and counters.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gocql/gocql"
)

const keyspace = "driver_go"

func main() {
	session := connect("")
	check(session.Query("DROP KEYSPACE IF EXISTS " + keyspace).Exec())
	check(session.Query("CREATE KEYSPACE " + keyspace +
		" WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}").Exec())
	session.Close()
	session = connect(keyspace)
	defer session.Close()
	for _, table := range []string{
		"CREATE TABLE locks (name text PRIMARY KEY, owner text, version int)",
		"CREATE TABLE seats (flight int, number int, name text STATIC, taken boolean, PRIMARY KEY (flight, number))",
		"CREATE TABLE visits (page text, day int, count counter, total counter STATIC, PRIMARY KEY (page, day))",
	} {
		check(session.Query(table).Exec())
	}
	conditions(session)
	batches(session)
	rivals(session)
	counters(session)
	check(session.Query("DROP KEYSPACE " + keyspace).Exec())
	fmt.Println("ok: all")
}

func connect(keyspace string) *gocql.Session {
	address := os.Getenv("PERISTYLE_ADDRESS")
	if address == "" {
		address = "127.0.0.1:9042"
	}
	host, port, _ := strings.Cut(address, ":")
	cluster := gocql.NewCluster(host)
	cluster.Port, _ = strconv.Atoi(port)
	cluster.Keyspace = keyspace
	cluster.Timeout = 20 * time.Second
	cluster.Consistency = gocql.One
	cluster.SerialConsistency = gocql.Serial
	session, err := cluster.CreateSession()
	check(err)
	return session
}

func conditions(session *gocql.Session) {
	row := map[string]interface{}{}
	insert := "INSERT INTO locks (name, owner, version) VALUES (?, ?, ?) IF NOT EXISTS"
	applied, err := session.Query(insert, "a", "me", 1).MapScanCAS(row)
	expect(err, applied, true, "the first")
	row = map[string]interface{}{}
	applied, err = session.Query(insert, "a", "you", 2).MapScanCAS(row)
	expect(err, applied, false, "the second")
	if row["owner"] != "me" || row["version"] != 1 {
		fail("the row that is there: %v", row)
	}
	var owner string
	var version int
	update := "UPDATE locks SET version = ? WHERE name = ? IF owner = ? AND version = ?"
	applied, err = session.Query(update, 2, "a", "me", 1).ScanCAS(&owner, &version)
	expect(err, applied, true, "its version")
	applied, err = session.Query(update, 3, "a", "me", 1).ScanCAS(&owner, &version)
	expect(err, applied, false, "an old version")
	if owner != "me" || version != 2 {
		fail("what is there: %s, %d", owner, version)
	}
	applied, err = session.Query("DELETE FROM locks WHERE name = ? IF owner IN ?", "a", []string{"you", "me"}).ScanCAS()
	expect(err, applied, true, "a deletion")
	applied, err = session.Query("UPDATE locks SET owner = ? WHERE name = ? IF EXISTS", "x", "a").ScanCAS()
	expect(err, applied, false, "what was deleted")
	read := session.Query("SELECT version FROM locks WHERE name = ?", "a").Consistency(gocql.Consistency(gocql.Serial))
	if err := read.Scan(&version); err != gocql.ErrNotFound {
		fail("a serial read: %v", err)
	}
	fmt.Println("ok: conditions")
}

func batches(session *gocql.Session) {
	batch := session.NewBatch(gocql.LoggedBatch)
	batch.Query("INSERT INTO seats (flight, name) VALUES (?, ?) IF NOT EXISTS", 1, "PE1")
	for number := 1; number <= 3; number++ {
		batch.Query("INSERT INTO seats (flight, number, taken) VALUES (?, ?, ?)", 1, number, false)
	}
	row := map[string]interface{}{}
	applied, iter, err := session.MapExecuteBatchCAS(batch, row)
	expect(err, applied, true, "a batch")
	check(iter.Close())
	take := func() (bool, map[string]interface{}) {
		batch := session.NewBatch(gocql.UnloggedBatch)
		for number := 1; number <= 2; number++ {
			batch.Query("UPDATE seats SET taken = ? WHERE flight = ? AND number = ? IF taken = ?", true, 1, number, false)
		}
		row := map[string]interface{}{}
		applied, iter, err := session.MapExecuteBatchCAS(batch, row)
		check(err)
		check(iter.Close())
		return applied, row
	}
	if applied, _ := take(); !applied {
		fail("two seats are free")
	}
	if applied, row := take(); applied || row["taken"] != true {
		fail("they are taken: %v", row)
	}
	fmt.Println("ok: batches with conditions")
}

func rivals(session *gocql.Session) {
	for round := 0; round < 20; round++ {
		var together sync.WaitGroup
		winners := make(chan int, 16)
		for rival := 0; rival < 16; rival++ {
			together.Add(1)
			go func() {
				defer together.Done()
				row := map[string]interface{}{}
				name := fmt.Sprintf("lock %d", round)
				insert := "INSERT INTO locks (name, version) VALUES (?, ?) IF NOT EXISTS"
				applied, err := session.Query(insert, name, rival).MapScanCAS(row)
				check(err)
				if applied {
					winners <- rival
				}
			}()
		}
		together.Wait()
		if len(winners) != 1 {
			fail("%d have the lock", len(winners))
		}
	}
	fmt.Println("ok: rivals for a row")
}

func counters(session *gocql.Session) {
	add := "UPDATE visits SET count = count + ?, total = total + ? WHERE page = ? AND day = ?"
	check(session.Query(add, 5, 5, "a", 1).Exec())
	check(session.Query("UPDATE visits SET count = count - ? WHERE page = ? AND day = ?", int64(7), "a", 1).Exec())
	batch := session.NewBatch(gocql.CounterBatch)
	for day := 1; day <= 3; day++ {
		batch.Query(add, 10, 1, "a", day)
	}
	check(session.ExecuteBatch(batch))
	var together sync.WaitGroup
	for worker := 0; worker < 16; worker++ {
		together.Add(1)
		go func() {
			defer together.Done()
			for i := 0; i < 100; i++ {
				check(session.Query("UPDATE visits SET count = count + 1 WHERE page = ? AND day = ?", "a", 2).Exec())
			}
		}()
	}
	together.Wait()
	var days []string
	var day int
	var count, total int64
	iter := session.Query("SELECT day, count, total FROM visits WHERE page = ?", "a").Iter()
	for iter.Scan(&day, &count, &total) {
		days = append(days, fmt.Sprintf("%d:%d:%d", day, count, total))
	}
	check(iter.Close())
	if got := strings.Join(days, " "); got != "1:8:8 2:1610:8 3:10:8" {
		fail("counters: %s", got)
	}
	fmt.Println("ok: counters")
}

func expect(err error, applied, wanted bool, what string) {
	check(err)
	if applied != wanted {
		fail("%s: applied is %t", what, applied)
	}
}

func check(err error) {
	if err != nil {
		fail("%v", err)
	}
}

func fail(format string, values ...interface{}) {
	fmt.Printf("failed: "+format+"\n", values...)
	os.Exit(1)
}
