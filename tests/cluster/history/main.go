// Judges what clients of a ring saw: ring-history FILE. tests/cluster/README.md says what the lines of the file are.
//
// A row is a register. Written with a number as its timestamp it keeps the greatest one, and the newest write wins
// whenever it arrives; a deletion has a number, too, and nothing is seen behind it. Changed by a condition it must show
// what is expected, and becomes what the change makes of it: another number, or no row. The history of each row must be
// linearizable: each request seems to be done at one moment between its question and its answer. One without an answer
// may be done at any moment after its question, or never.
//
// It exits with 0 when all rows are linearizable, with 1 when one is not (a drawing of it is beside the file), and with
// 2 when it can not tell.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	timeMax    = 2 * time.Minute
	refused    = 1
	cannotTell = 2
)

// row is what a row shows: the number of the last write of all, and whether that one deleted it.
type row struct {
	number  int64
	isThere bool
}

// request is what a client asked for: a write or a deletion with its number, a read, or a change of what it expected,
// which was applied, or refused with what was there instead. Of one without an answer nobody knows whether it was done.
type request struct {
	row      int64
	kind     string
	expected row
	number   row
	isOpen   bool
}

var model = porcupine.Model{
	Partition: byRow,
	Init:      func() any { return row{} },
	Step: func(state, input, output any) (bool, any) {
		now, asked := state.(row), input.(request)
		switch asked.kind {
		case "read":
			return shows(now, asked.number), now
		case "refusal":
			return shows(now, asked.number) && !shows(now, asked.expected), now
		case "change":
			if shows(now, asked.expected) {
				return true, asked.number
			}
			return asked.isOpen, now
		}
		if asked.number.number > now.number {
			now = row{asked.number.number, asked.kind == "write"}
		}
		return true, now
	},
	DescribeOperation: func(input, output any) string {
		asked := input.(request)
		return fmt.Sprint(asked.kind, " ", asked.expected, " ", asked.number)
	},
	DescribeState: func(state any) string { return fmt.Sprint(state) },
}

// shows tells whether that is what a reader of the row sees.
func shows(now, seen row) bool {
	return seen.isThere == now.isThere && (!seen.isThere || seen.number == now.number)
}

func byRow(history []porcupine.Operation) [][]porcupine.Operation {
	var rows [][]porcupine.Operation
	indexes := map[int64]int{}
	for _, operation := range history {
		of := operation.Input.(request).row
		index, isKnown := indexes[of]
		if !isKnown {
			index = len(rows)
			indexes[of] = index
			rows = append(rows, nil)
		}
		rows[index] = append(rows[index], operation)
	}
	return rows
}

func main() {
	path := os.Args[1]
	history, err := read(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(cannotTell)
	}
	result, info := porcupine.CheckOperationsVerbose(model, history, timeMax)
	rowCount := len(byRow(history))
	switch result {
	case porcupine.Ok:
		fmt.Printf("linearizable: %d requests of %d rows\n", len(history), rowCount)
	case porcupine.Illegal:
		drawing := path + ".html"
		if err := porcupine.VisualizePath(model, info, drawing); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		fmt.Printf("not linearizable: %d requests of %d rows, drawn in %s\n", len(history), rowCount, drawing)
		os.Exit(refused)
	default:
		fmt.Printf("not known after %v: %d requests of %d rows\n", timeMax, len(history), rowCount)
		os.Exit(cannotTell)
	}
}

func read(path string) ([]porcupine.Operation, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var history []porcupine.Operation
	var isOpen []bool
	var end int64
	for lines := bufio.NewScanner(file); lines.Scan(); {
		operation, hasAnswer, err := parse(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", len(history)+1, err)
		}
		history, isOpen = append(history, operation), append(isOpen, !hasAnswer)
		end = max(end, operation.Call, operation.Return)
	}
	for index := range history {
		if isOpen[index] {
			history[index].Return = end + 1
		}
	}
	return history, nil
}

// parse reads "row client kind asked answered expected number", with "-" for an answer that never came and for no row.
func parse(line string) (operation porcupine.Operation, hasAnswer bool, err error) {
	words := strings.Fields(line)
	if len(words) != 7 {
		return operation, false, fmt.Errorf("%d words instead of 7", len(words))
	}
	number := func(word string) (value int64) {
		if err == nil {
			value, err = strconv.ParseInt(word, 10, 64)
		}
		return value
	}
	orNone := func(word string) (value int64, isThere bool) {
		if word == "-" {
			return 0, false
		}
		return number(word), true
	}
	shown := func(word string) row {
		value, isThere := orNone(word)
		return row{value, isThere}
	}
	operation.ClientId, operation.Call = int(number(words[1])), number(words[3])
	operation.Return, hasAnswer = orNone(words[4])
	asked := request{number(words[0]), words[2], shown(words[5]), shown(words[6]), !hasAnswer}
	switch asked.kind {
	case "read", "refusal", "change":
	case "write", "delete":
		if !asked.number.isThere {
			return operation, false, fmt.Errorf("'%s' of nothing", asked.kind)
		}
	default:
		return operation, false, fmt.Errorf("nobody asks for '%s'", asked.kind)
	}
	operation.Input = asked
	return operation, hasAnswer, err
}
