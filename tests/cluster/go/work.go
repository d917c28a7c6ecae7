package main

import (
	"fmt"
	"sync"
	"sync/atomic"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

const (
	insertText = "INSERT INTO " + keyspace + ".rows (id, v) VALUES (?, ?)"
	selectText = "SELECT v FROM " + keyspace + ".rows WHERE id = ?"
)

// work is rows that are written and read until it is ended.
type work struct {
	session *gocql.Session
	next    atomic.Int32
	isOver  atomic.Bool
	writers sync.WaitGroup

	lock         sync.Mutex
	acknowledged []int32
	failures     []string
}

func startWork(session *gocql.Session) *work {
	w := &work{session: session}
	for range writerCount {
		w.writers.Add(1)
		go w.write()
	}
	return w
}

func (w *work) write() {
	defer w.writers.Done()
	for !w.isOver.Load() {
		id := w.next.Add(1)
		if err := w.session.Query(insertText, id, value(id)).Exec(); err != nil {
			w.fail(err.Error())
			continue
		}
		w.lock.Lock()
		w.acknowledged = append(w.acknowledged, id)
		w.lock.Unlock()
		if found, err := selectRow(w.session, id, gocql.Quorum); err != nil || found != value(id) {
			w.fail(fmt.Sprintf("row %d is shown as '%s': %v", id, found, err))
		}
	}
}

func (w *work) fail(what string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.failures = append(w.failures, what)
}

func (w *work) acknowledgedCount() int {
	w.lock.Lock()
	defer w.lock.Unlock()
	return len(w.acknowledged)
}

func (w *work) end() {
	w.isOver.Store(true)
	w.writers.Wait()
}

func value(id int32) string { return fmt.Sprint("v", id) }

func selectRow(session *gocql.Session, id int32, level gocql.Consistency) (found string, err error) {
	err = session.Query(selectText, id).Consistency(level).Scan(&found)
	return found, err
}

func hasAllRows(session *gocql.Session, acknowledged []int32) {
	for _, level := range []gocql.Consistency{gocql.Quorum, gocql.All} {
		var next, lost atomic.Int32
		var readers sync.WaitGroup
		for range readerCount {
			readers.Add(1)
			go func() {
				defer readers.Done()
				for i := next.Add(1) - 1; int(i) < len(acknowledged); i = next.Add(1) - 1 {
					id := acknowledged[i]
					if found, err := selectRow(session, id, level); err != nil || found != value(id) {
						fmt.Printf("row %d at %v: '%s' %v\n", id, level, found, err)
						lost.Add(1)
					}
				}
			}()
		}
		readers.Wait()
		check(lost.Load() == 0, "%d acknowledged rows are not there at %v", lost.Load(), level)
	}
	var count int
	must(session.Query("SELECT count(*) FROM " + keyspace + ".rows").Scan(&count))
	check(count == len(acknowledged), "%d rows counted, expected %d", count, len(acknowledged))
	fmt.Printf("ok: %d rows are there\n", len(acknowledged))
}
