package main

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type (
	request  = kmsg.OffsetCommitRequest
	response = kmsg.OffsetCommitResponse
)

// firstError finds the first partition whose commit was refused.
func firstError(answer *response) error {
	for _, topic := range answer.Topics {
		for _, partition := range topic.Partitions {
			if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
				return err
			}
		}
	}
	return nil
}
