// Judges what clients of a ring saw: ring-history FILE. tests/cluster/README.md says what the lines of the file are.
//
// A row is a register that keeps the greatest number: a write comes with a timestamp, its number, and the newest one
// wins whenever it arrives. A deletion has a number, too, and nothing is seen behind it. The history of each row must be
// linearizable: each request seems to be done at one moment between its question and its answer. One without an answer
// may be done at any moment after its question, or never, which is the same as at the end.
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

// request is what a client asked for: a write or a deletion with its number, or a read.
type request struct {
	row    int64
	kind   string
	number int64
}

var model = porcupine.Model{
	Partition: byRow,
	Init:      func() any { return row{} },
	Step: func(state, input, output any) (bool, any) {
		now, asked := state.(row), input.(request)
		if asked.kind == "read" {
			seen := output.(row)
			return seen.isThere == now.isThere && (!seen.isThere || seen.number == now.number), now
		}
		if asked.number > now.number {
			now = row{asked.number, asked.kind == "write"}
		}
		return true, now
	},
	DescribeOperation: func(input, output any) string {
		asked := input.(request)
		if asked.kind == "read" {
			return fmt.Sprint("read ", output)
		}
		return fmt.Sprint(asked.kind, " ", asked.number)
	},
	DescribeState: func(state any) string { return fmt.Sprint(state) },
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

// parse reads "row client kind asked answered number", with "-" for an answer that never came and for no row.
func parse(line string) (operation porcupine.Operation, hasAnswer bool, err error) {
	words := strings.Fields(line)
	if len(words) != 6 {
		return operation, false, fmt.Errorf("%d words instead of 6", len(words))
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
	asked := request{row: number(words[0]), kind: words[2]}
	operation.ClientId, operation.Call = int(number(words[1])), number(words[3])
	operation.Return, hasAnswer = orNone(words[4])
	value, isThere := orNone(words[5])
	switch {
	case asked.kind == "read":
		operation.Output = row{value, isThere}
	case (asked.kind == "write" || asked.kind == "delete") && isThere:
		asked.number = value
	default:
		return operation, false, fmt.Errorf("'%s' of '%s'", asked.kind, words[5])
	}
	operation.Input = asked
	return operation, hasAnswer, err
}
