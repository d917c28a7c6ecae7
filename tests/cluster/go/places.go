package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// row is one of which the server tells the nodes that have it, in the order of the ring.
type row struct {
	keyspace string
	key      int32
	replicas []string
}

// places says where the server puts tokens and rows: the file PERISTYLE_PLACES of tests/cluster/README.md.
type places struct {
	// tokens of each address, sorted.
	tokens map[string][]string
	rows   []row
}

func readPlaces() places {
	text, err := os.ReadFile(os.Getenv("PERISTYLE_PLACES"))
	must(err)
	found := places{tokens: map[string][]string{}}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		switch words := strings.Split(line, " "); words[0] {
		case "token":
			found.tokens[words[1]] = append(found.tokens[words[1]], words[2])
		case "row":
			key, err := strconv.ParseInt(words[2], 10, 32)
			must(err)
			found.rows = append(found.rows, row{words[1], int32(key), words[3:]})
		default:
			panic(fmt.Sprint("a line of places: ", line))
		}
	}
	for _, tokens := range found.tokens {
		slices.Sort(tokens)
	}
	return found
}
