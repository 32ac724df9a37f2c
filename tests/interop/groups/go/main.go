// One member of a group with franz-go. It speaks the same lines as members/session.py.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

type config struct {
	Bootstrap           string  `json:"bootstrap"`
	Group               string  `json:"group"`
	Topic               string  `json:"topic"`
	Assignor            string  `json:"assignor"`
	Protocol            string  `json:"protocol"`
	InstanceID          *string `json:"instance_id"`
	SessionTimeoutMs    int     `json:"session_timeout_ms"`
	HeartbeatIntervalMs int     `json:"heartbeat_interval_ms"`
}

type command struct {
	Do        string `json:"do"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

type facts map[string]any

var writing sync.Mutex

func emit(event string, more facts) {
	line := facts{"event": event}
	for name, fact := range more {
		line[name] = fact
	}
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	writing.Lock()
	defer writing.Unlock()
	fmt.Printf("%s\n", text)
}

func read(commands chan<- command) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var asked command
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		commands <- asked
	}
	commands <- command{Do: "leave"}
}

// member keeps what it has processed and not yet committed; only the poll loop and the
// callbacks touch it, and BlockRebalanceOnPoll keeps those apart.
type member struct {
	config  config
	pending map[string]map[int32]kgo.EpochOffset
}

func (m *member) options() []kgo.Opt {
	balancers := map[string]kgo.GroupBalancer{
		"range":              kgo.RangeBalancer(),
		"roundrobin":         kgo.RoundRobinBalancer(),
		"sticky":             kgo.StickyBalancer(),
		"cooperative-sticky": kgo.CooperativeStickyBalancer(),
		"uniform":            kgo.StickyBalancer(),
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(m.config.Bootstrap),
		kgo.ConsumerGroup(m.config.Group),
		kgo.ConsumeTopics(m.config.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.Balancers(balancers[m.config.Assignor]),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.SessionTimeout(time.Duration(m.config.SessionTimeoutMs) * time.Millisecond),
		kgo.HeartbeatInterval(time.Duration(m.config.HeartbeatIntervalMs) * time.Millisecond),
		kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.MetadataMaxAge(time.Second),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, now map[string][]int32) {
			emit("assigned", facts{"partitions": sorted(now[m.config.Topic])})
		}),
		kgo.OnPartitionsRevoked(func(ctx context.Context, cl *kgo.Client, now map[string][]int32) {
			m.commit(ctx, cl)
			emit("revoked", facts{"partitions": sorted(now[m.config.Topic])})
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, now map[string][]int32) {
			m.pending = map[string]map[int32]kgo.EpochOffset{}
			emit("lost", facts{"partitions": sorted(now[m.config.Topic])})
		}),
	}
	if m.config.Protocol == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
	}
	if m.config.InstanceID != nil {
		options = append(options, kgo.InstanceID(*m.config.InstanceID))
	}
	return options
}

func sorted(partitions []int32) []int32 {
	copied := append([]int32{}, partitions...)
	sort.Slice(copied, func(i, j int) bool { return copied[i] < copied[j] })
	return copied
}

func (m *member) commit(ctx context.Context, cl *kgo.Client) {
	if len(m.pending) == 0 {
		return
	}
	offsets := map[int32]int64{}
	for partition, position := range m.pending[m.config.Topic] {
		offsets[partition] = position.Offset
	}
	var failure error
	cl.CommitOffsetsSync(ctx, m.pending, func(
		_ *kgo.Client, _ *request, response *response, err error,
	) {
		failure = err
		if err == nil {
			failure = firstError(response)
		}
	})
	if failure != nil { // tried again with the next messages, or when the partitions go
		emit("commit failed", facts{"name": failure.Error()})
		return
	}
	emit("committed", facts{"offsets": offsets})
	m.pending = map[string]map[int32]kgo.EpochOffset{}
}

func (m *member) process(record *kgo.Record) {
	emit("message", facts{
		"topic": record.Topic, "partition": record.Partition,
		"offset": record.Offset, "value": string(record.Value),
	})
	if m.pending[record.Topic] == nil {
		m.pending[record.Topic] = map[int32]kgo.EpochOffset{}
	}
	m.pending[record.Topic][record.Partition] = kgo.EpochOffset{Epoch: -1, Offset: record.Offset + 1}
}

func (m *member) obey(cl *kgo.Client, asked command) {
	one := map[string][]int32{m.config.Topic: {asked.Partition}}
	switch asked.Do {
	case "pause":
		cl.PauseFetchPartitions(one)
	case "resume":
		cl.ResumeFetchPartitions(one)
	case "seek":
		cl.SetOffsets(map[string]map[int32]kgo.EpochOffset{
			m.config.Topic: {asked.Partition: {Epoch: -1, Offset: asked.Offset}},
		})
	}
	emit("done", facts{"do": asked.Do, "partition": asked.Partition, "offset": asked.Offset})
}

func (m *member) poll(cl *kgo.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	fetches := cl.PollRecords(ctx, 20)
	fetches.EachRecord(m.process)
	for _, failed := range fetches.Errors() {
		if failed.Err != context.DeadlineExceeded {
			emit("error", facts{"name": failed.Err.Error(), "fatal": false})
		}
	}
	m.commit(context.Background(), cl)
	cl.AllowRebalance()
}

func main() {
	m := &member{pending: map[string]map[int32]kgo.EpochOffset{}}
	if err := json.Unmarshal([]byte(os.Args[1]), &m.config); err != nil {
		panic(err)
	}
	cl, err := kgo.NewClient(m.options()...)
	if err != nil {
		panic(err)
	}
	commands := make(chan command, 16)
	go read(commands)
	emit("subscribed", nil)
	isLeaving := false
	for !isLeaving || len(m.pending) > 0 {
		select {
		case asked := <-commands:
			if asked.Do == "leave" {
				isLeaving = true
			} else {
				m.obey(cl, asked)
			}
		default:
		}
		m.poll(cl)
	}
	cl.CloseAllowingRebalance()
	emit("left", nil)
}
