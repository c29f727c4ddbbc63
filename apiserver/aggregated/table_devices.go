package aggregated

// R4 device.html, devicedefinition.html, devicemetric.html.

// deviceTitleColumn shows the first item of the element deviceName.
var deviceTitleColumn = column{name: "Title", cell: first[deviceName]("deviceName"), description: "The first of the device's names."}

var deviceTable = table{
	deviceTitleColumn,
	{name: "Type", cell: one[codeableConcept]("type"), description: "The kind of device."},
	{name: "Manufacturer", cell: one[primitive]("manufacturer"), description: "Who made it."},
	{name: "Serial", cell: one[primitive]("serialNumber"), description: "The serial number."},
	{name: "Status", cell: one[primitive]("status"), description: "Whether the device is in use."},
	{name: "Model", wide: true, cell: one[primitive]("modelNumber"), description: "The manufacturer's number of the model."},
	{name: "Patient", wide: true, cell: one[reference]("patient"), description: "The patient to whom it is attached."},
	{name: "Location", wide: true, cell: one[reference]("location"), description: "Where it is."},
	{name: "Owner", wide: true, cell: one[reference]("owner"), description: "The organization that answers for it."},
	{name: "Expires", wide: true, cell: one[primitive]("expirationDate"), description: "Until when it may be used."},
}

var deviceDefinitionTable = table{
	deviceTitleColumn,
	{name: "Type", cell: one[codeableConcept]("type"), description: "The kind of device."},
	{name: "Manufacturer", cell: either(one[primitive]("manufacturerString"), one[reference]("manufacturerReference")), description: "Who makes it."},
	{name: "Model", cell: one[primitive]("modelNumber"), description: "The manufacturer's number of the model."},
	{name: "Versions", wide: true, cell: all[primitive]("version"), description: "The versions there are."},
	{name: "Owner", wide: true, cell: one[reference]("owner"), description: "The organization that answers for it."},
}

var deviceMetricTable = table{
	{name: "Type", cell: one[codeableConcept]("type"), description: "What is measured, set or calculated."},
	{name: "Category", cell: one[primitive]("category"), description: "Whether it is measured, set or calculated."},
	{name: "Unit", cell: one[codeableConcept]("unit"), description: "The unit of the values."},
	{name: "Source", cell: one[reference]("source"), description: "The device it belongs to."},
	{name: "Status", cell: one[primitive]("operationalStatus"), description: "The state of the metric."},
	{name: "Parent", wide: true, cell: one[reference]("parent"), description: "The part of the device it belongs to."},
	{name: "Color", wide: true, cell: one[primitive]("color"), description: "The colour in which it is shown."},
}

type deviceName struct {
	Name primitive `json:"name"`
}

func (d deviceName) String() string { return string(d.Name) }
