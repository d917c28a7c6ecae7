"""The Python driver's object mapper (cqlengine): conditions and counters, as applications use them."""

import os
import threading
import uuid

from cassandra.cqlengine import columns, connection, management, usertype
from cassandra.cqlengine.models import Model
from cassandra.cqlengine.query import BatchQuery, BatchType, LWTException

HOST, PORT = os.environ.get("PERISTYLE_ADDRESS", "127.0.0.1:9042").rsplit(":", 1)
KEYSPACE = "driver_mapper"
# The mapper has no conditions on null.
NOBODY = uuid.UUID(int=0)


class Address(usertype.UserType):
    street = columns.Text()
    number = columns.Integer()


class Account(Model):
    name = columns.Text(primary_key=True)
    version = columns.Integer()
    tags = columns.Set(columns.Text)
    limits = columns.Map(columns.Text, columns.Integer)
    home = columns.UserDefinedType(Address)


class Seat(Model):
    flight = columns.Integer(primary_key=True)
    number = columns.Integer(primary_key=True, clustering_order="ASC")
    flight_name = columns.Text(static=True)
    passenger = columns.UUID()


class Visits(Model):
    page = columns.Text(primary_key=True)
    day = columns.Integer(primary_key=True)
    count = columns.Counter()
    bounced = columns.Counter()


def step(words):
    print(f"ok: {words}", flush=True)


def refused(act):
    """What the row has for which a condition does not hold."""
    try:
        act()
    except LWTException as error:
        return error.existing
    raise SystemExit("failed: it was applied")


def schema():
    connection.setup([HOST], "cqlengine", port=int(PORT))
    management.drop_keyspace(KEYSPACE)
    management.create_keyspace_simple(KEYSPACE, 1)
    for model in (Account, Seat, Visits):
        model.__keyspace__ = KEYSPACE
    management.sync_type(KEYSPACE, Address)
    for model in (Account, Seat, Visits):
        management.sync_table(model)
        management.sync_table(model)
    step("schema, synchronised twice")


def conditions():
    Account.if_not_exists().create(name="a", version=1, tags={"x"}, limits={"l": 5}, home=Address(street="s", number=1))
    existing = refused(lambda: Account.if_not_exists().create(name="a", version=9))
    assert existing["[applied]"] is False and existing["version"] == 1 and existing["tags"] == {"x"}, existing
    account = Account.get(name="a")
    account.iff(version=1).update(version=2)
    assert refused(lambda: account.iff(version=1).update(version=3))["version"] == 2
    Account.objects(name="a").iff(version=2, tags={"x"}).update(tags__add={"y"})
    assert refused(lambda: Account.objects(name="a").iff(version=3).update(limits__update={"l": 6}))["version"] == 2
    Account.objects(name="a").iff(version__gt=1).update(version=None)
    assert refused(lambda: Account.objects(name="b").if_exists().update(version=1)) == {"[applied]": False}
    assert refused(lambda: Account.objects(name="b").if_exists().delete()) == {"[applied]": False}
    Account.objects(name="a").if_exists().update(version=5)
    assert Account.get(name="a").tags == {"x", "y"} and Account.get(name="a").version == 5
    refused(lambda: Account.objects(name="a").iff(version=1).delete())
    Account.objects(name="a").iff(version=5).delete()
    assert Account.objects(name="a").count() == 0
    step("conditions on rows and sets; deletions")


def batches():
    with BatchQuery() as batch:
        for number in (1, 2):
            Seat.batch(batch).if_not_exists().create(
                flight=7, number=number, flight_name="PE7", passenger=NOBODY
            )
    passenger = uuid.uuid4()

    def take(number, seat):
        with BatchQuery() as batch:
            Seat.objects(flight=7, number=number).batch(batch).iff(passenger=NOBODY).update(passenger=seat)

    take(1, passenger)
    existing = refused(lambda: take(1, uuid.uuid4()))
    assert existing["passenger"] == passenger, existing
    assert [seat.passenger for seat in Seat.objects(flight=7)] == [passenger, NOBODY]
    step("batches with conditions")


def rivals():
    """One of many takes a seat, each time."""
    for number in range(10, 20):
        winners = []

        def take():
            mine = uuid.uuid4()
            try:
                Seat.if_not_exists().create(flight=7, number=number, passenger=mine)
                winners.append(mine)
            except LWTException:
                pass

        threads = [threading.Thread(target=take) for _ in range(8)]
        for act in (threading.Thread.start, threading.Thread.join):
            for thread in threads:
                act(thread)
        assert winners == [Seat.get(flight=7, number=number).passenger], (number, winners)
    step("rivals for a row")


def counters():
    visits = Visits.create(page="index", day=1)
    visits.count += 5
    visits.bounced -= 2
    visits.save()
    visits = Visits.get(page="index", day=1)
    assert (visits.count, visits.bounced) == (5, -2), dict(visits)
    visits.count -= 6
    visits.update()
    Visits.objects(page="index", day=2).update(count=3)
    with BatchQuery(batch_type=BatchType.Counter) as batch:
        for day in (1, 2, 3):
            Visits.objects(page="index", day=day).batch(batch).update(count=10)
    assert [(row.day, row.count) for row in Visits.objects(page="index")] == [(1, 9), (2, 13), (3, 10)]
    Visits.objects(page="index", day=1).delete()
    assert Visits.objects(page="index").count() == 2
    def count():
        for _ in range(50):
            Visits.objects(page="busy", day=1).update(count=1)

    threads = [threading.Thread(target=count) for _ in range(8)]
    for act in (threading.Thread.start, threading.Thread.join):
        for thread in threads:
            act(thread)
    assert Visits.get(page="busy", day=1).count == 400
    step("counters: added to, taken from, in batches, by many")


def main():
    os.environ["CQLENG_ALLOW_SCHEMA_MANAGEMENT"] = "1"
    schema()
    conditions()
    batches()
    rivals()
    counters()
    management.drop_keyspace(KEYSPACE)
    step("all")


main()
